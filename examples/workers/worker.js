// A worker in Node: reads messages and answers each with a line of JSON.
async function handle(message) {
  if (message.body.startsWith('dead')) return { error: 'can never succeed', dead: true }
  if (message.body.startsWith('fail')) return { error: 'not now', retry_after_seconds: 60 }
  return {}
}

// import() works beside a package.json of either type.
import('node:readline').then(({ createInterface }) => {
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const message = JSON.parse(line)
    const outcome = await handle(message).catch((error) => ({ error: String(error) }))
    process.stdout.write(JSON.stringify({ id: message.id, ...outcome }) + '\n')
  })
})
