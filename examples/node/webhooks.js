// Delivers webhooks from the queue: a consumer in another language, with the same procedures.
//
// Usage:  npm install && RUNNER_DATABASE=postgresql://… node webhooks.js [--drain]
// Send:   SELECT mq.send('webhook', '{"url": "https://…", "payload": {…}}');     on MySQL and MariaDB: CALL mq_send(…);
//
// 2xx: done. 4xx, or a message that is not a webhook: dead at once. Anything else: retried after the queue's backoff.
// SIGTERM and SIGINT finish the batch at hand. --drain ends when nothing is ready.
const TYPE = 'webhook'
const SIZE = 20
const LEASE_SECONDS = 60
const TIMEOUT_SECONDS = 20 // for one request; all of a batch run at the same time, so well within the lease

class Refused extends Error {}

async function post (message) {
  let url, payload
  try {
    ({ url, payload } = JSON.parse(message.body))
    url = new URL(url)
  } catch (error) {
    throw new Refused(`not a webhook: ${error.message}`)
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': message.id },
    body: JSON.stringify(payload),
    signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1000)
  })
  await response.body?.cancel()
  if (response.status >= 400 && response.status < 500) throw new Refused(`HTTP ${response.status}`)
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
}

// A line of finish_batch's list of outcomes, or undefined if the message is done.
async function handle (message) {
  try {
    await post(message)
  } catch (error) {
    const text = error.cause?.message ?? error.message
    console.error(`message ${message.id} failed (attempt ${message.attempt}): ${text}`)
    return JSON.stringify({ id: Number(message.id), error: text, dead: error instanceof Refused })
  }
}

// A connection: `call` returns the rows of a procedure, whose arguments are all given.
async function connect (url, name) {
  return url.startsWith('postgres') ? connectPostgreSQL(url, name) : connectMySQL(url, name)
}

async function connectPostgreSQL (url, name) {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url, application_name: name })
  await client.connect()
  const call = async (procedure, ...values) => {
    const places = values.map((_, i) => `$${i + 1}`).join(', ')
    return (await client.query(`SELECT * FROM mq.${procedure}(${places})`, values)).rows
  }
  return { call, end: () => client.end() }
}

async function connectMySQL (url, name) {
  const { default: mysql } = await import('mysql2/promise')
  const client = await mysql.createConnection({ uri: url.replace(/^mariadb:/, 'mysql:'), timezone: 'Z' })
  await client.query('SET @mq_application = ?', [name])
  const call = async (procedure, ...values) => {
    const places = values.map(() => '?').join(', ')
    // A call has one result with rows and then its end; the driver reads both and throws a late error.
    const [[rows]] = await client.query(`CALL mq_${procedure}(${places})`, values)
    return rows
  }
  return { call, end: () => client.end() }
}

// The next batch; none when this one was lost: its lease ended, and other consumers have its messages.
async function finish (call, batch, outcomes, size) {
  try {
    return await call('finish_batch', batch[0].batch_key, outcomes.join('\n') || null, size)
  } catch (error) {
    if (error.code === '50008' || error.errno === 50008) return []
    throw error
  }
}

async function consume (call, drain) {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort())
  while (!stop.signal.aborted) {
    let batch = await call('claim_batch', TYPE, SIZE, null, LEASE_SECONDS)
    if (batch.length === 0 && drain) return
    if (batch.length === 0) await call('wait_for_message', TYPE, 2)
    while (batch.length > 0) {
      const outcomes = (await Promise.all(batch.map(handle))).filter(Boolean)
      batch = await finish(call, batch, outcomes, stop.signal.aborted ? 0 : SIZE)
    }
  }
}

const url = process.env.RUNNER_DATABASE
if (!url) {
  console.error('webhooks.js: RUNNER_DATABASE must hold the URL of the database')
  process.exit(2)
}
let client
try {
  client = await connect(url, `webhooks:${process.pid}`)
  await consume(client.call, process.argv.includes('--drain'))
} catch (error) {
  console.error(`webhooks.js: ${error.message}`)
  process.exitCode = 1
} finally {
  await client?.end().catch(() => {})
}
