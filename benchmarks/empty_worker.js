// A worker that does nothing, and reports the messages and the seconds from its first message to its last.
const fs = require('node:fs')
const readline = require('node:readline')

let count = 0
let first = 0
let last = 0

readline
  .createInterface({ input: process.stdin })
  .on('line', (line) => {
    last = performance.now()
    first = first || last
    count += 1
    process.stdout.write(`{"id":${JSON.parse(line).id}}\n`)
  })
  .on('close', () => fs.writeFileSync(process.env.BENCHMARK_FILE, `${count - 1} ${first / 1000} ${last / 1000} 0 0\n`))
