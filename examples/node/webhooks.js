// Delivers webhooks from the queue.
//
// Usage:  npm install && RUNNER_DATABASE=postgresql://… node webhooks.js [--drain]
// Send:   SELECT mq.send('webhook', '{"url": "https://…", "payload": {…}}');     on MySQL and MariaDB: CALL mq_send(…);
//
// 2xx: done. 4xx, or a message that is not a webhook: dead at once. Anything else: retried after the queue's backoff.
// SIGTERM and SIGINT let the deliveries at hand end. --drain ends when nothing is ready.
import { Consumer, DeadLetter } from 'rowqueue'

const TIMEOUT_SECONDS = 20 // for one request

async function post (message) {
  let url, payload
  try {
    ({ url, payload } = JSON.parse(message.body))
    url = new URL(url)
  } catch (error) {
    throw new DeadLetter(`not a webhook: ${error.message}`)
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': String(message.id) },
    body: JSON.stringify(payload),
    signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1000)
  })
  await response.body?.cancel()
  if (response.status >= 400 && response.status < 500) throw new DeadLetter(`HTTP ${response.status}`)
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
}

const url = process.env.RUNNER_DATABASE
if (!url) {
  console.error('webhooks.js: RUNNER_DATABASE must hold the URL of the database')
  process.exit(2)
}
const consumer = new Consumer(url, 'webhook', post, { concurrency: 20, drain: process.argv.includes('--drain') })
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => consumer.stop())
try {
  await consumer.run()
} catch (error) {
  console.error(`webhooks.js: ${error.message || error.code}`)
  process.exitCode = 1
}
