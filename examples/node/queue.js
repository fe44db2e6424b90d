// A producer and a consumer in Node: copy this file, then change `store` and `handle`.
//
// Usage:  npm install && DATABASE_URL=postgresql://… node queue.js send TYPE BODY…     (or mysql://, mariadb://)
//         node queue.js consume TYPE      BATCH_SIZE and LEASE_SECONDS change the defaults; SIGTERM ends it
//
// `send` stores rows of the application and sends the messages in one transaction: all of it happens or nothing.
import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const SIZE = Number(process.env.BATCH_SIZE ?? 20)
const LEASE_SECONDS = Number(process.env.LEASE_SECONDS ?? 60)
const IDLE_SECONDS = 2 // messages become due and leases run out without a notification

class QueueError extends Error {} // one of the contract's: number 50002, name invalid_argument
class GiveUp extends Error {} // thrown by a handler: dead-letter the message now

// ---- The application's own part ----

const store = (db, body) => db.query('INSERT INTO orders (body) VALUES (?)', [body])

async function handle (message) {
  if (message.body === 'fail') throw new Error('first line, with "quotes"\n17,,a line that looks like a failure\nlast line')
  if (message.body === 'retry' && message.attempt === 1) throw new Error('not yet')
  if (message.body === 'dead') throw new GiveUp('no such address')
  if (message.body === 'slow') await sleep(4000)
  appendFileSync(process.env.HANDLED, JSON.stringify([message.id, message.body]) + '\n')
}

// ---- The queue ----

// A connection: `query` takes ? for parameters on each database, `call` returns the rows of a procedure, all of whose arguments
// are given, and `wait` returns when there may be a message or the time is up.
async function connect (url) {
  const db = await (url.startsWith('postgres') ? connectPostgreSQL(url) : connectMySQL(url))
  return { ...db, call: (...call) => db.call(...call).catch(translate) }
}

async function connectPostgreSQL (url) {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a lost connection: the next query fails with it
  await client.connect()
  const query = async (sql, values) => {
    let n = 0
    return (await client.query(sql.replaceAll('?', () => `$${++n}`), values)).rows
  }
  const call = (name, ...values) => query(`SELECT * FROM mq.${name}(${values.map(() => '?').join(', ')})`, values)
  const listen = type => client.query(`LISTEN mq_${createHash('md5').update(type).digest('hex')}`)
  const wait = async (type, signal) => {
    const notified = new Promise(resolve => client.once('notification', resolve)) // before the question: none is missed
    const [{ ready }] = await call('wait_for_message', type, 0)
    const timer = new AbortController()
    const time = sleep(IDLE_SECONDS * 1000, null, { signal: AbortSignal.any([signal, timer.signal]) }).catch(() => {})
    if (!ready) await Promise.race([notified, time])
    timer.abort()
    client.removeAllListeners('notification')
  }
  return { query, call, listen, wait, end: () => client.end() }
}

async function connectMySQL (url) {
  const { default: mysql } = await import('mysql2/promise')
  const client = await mysql.createConnection({ uri: url.replace(/^mariadb:/, 'mysql:'), timezone: 'Z', charset: 'utf8mb4' })
  client.on('error', () => {})
  const query = async (sql, values) => (await client.query(sql, values))[0]
  await query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED') // for claims in transactions of a handler's
  // A call has one result with rows and then its end; the driver reads both, and throws what comes late.
  const call = async (name, ...values) => (await query(`CALL mq_${name}(${values.map(() => '?').join(', ')})`, values))[0]
  const wait = type => call('wait_for_message', type, IDLE_SECONDS)
  return { query, call, listen: async () => {}, wait, end: () => client.end() }
}

function translate (error) {
  const number = error.errno ?? Number(error.code) // MySQL's error number, or PostgreSQL's SQLSTATE
  if (!(number >= 50001 && number <= 50099)) throw error
  throw Object.assign(new QueueError(error.message, { cause: error }), { number, name: error.message.split(':')[0] })
}

// Deadlocks and conflicts undo the transaction: `work` is done again, all of it.
async function repeat (work) {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const again = ['40001', '40P01'].includes(error.code) || [1020, 1205, 1213].includes(error.errno)
      if (!again || tries === 10) throw error
      await sleep(Math.random() * 20 * 2 ** tries)
    }
  }
}

const transaction = (db, work) => repeat(async () => {
  await db.query('START TRANSACTION')
  try {
    await work()
    await db.query('COMMIT')
  } catch (error) {
    await db.query('ROLLBACK').catch(() => {})
    throw error
  }
})

const send = (db, type, bodies) => transaction(db, async () => {
  for (const body of bodies) {
    await store(db, body)
    await db.call('send', type, body)
  }
})

// A line of finish_batch's list of failures, or undefined: id, seconds (empty: the queue's backoff, -1: dead now), error.
async function attempt (message) {
  try {
    await handle(message)
  } catch (error) {
    console.error(`message ${message.id} failed (attempt ${message.attempt}): ${error.message}`)
    return `${message.id},${error instanceof GiveUp ? -1 : ''},${JSON.stringify(error.message.replaceAll('\0', ''))}`
  }
}

async function consume (db, type, signal) {
  const call = (...call) => repeat(() => db.call(...call))
  await db.listen(type)
  while (!signal.aborted) {
    let batch = await call('claim_batch', type, SIZE, `${hostname()}:${process.pid}`, LEASE_SECONDS)
    if (batch.length === 0) await db.wait(type, signal)
    while (batch.length > 0) {
      const key = batch[0].batch_key
      const heartbeat = setInterval(() => {
        call('extend_lease', key, LEASE_SECONDS).catch(error => console.error(`lease not extended: ${error.message}`))
      }, LEASE_SECONDS * 1000 / 3)
      const failures = (await Promise.all(batch.map(attempt))).filter(Boolean)
      clearInterval(heartbeat)
      try {
        batch = await call('finish_batch', key, failures.join('\n') || null, signal.aborted ? 0 : SIZE)
      } catch (error) {
        if (error.number !== 50008) throw error
        console.error(`50008 ${error.message}`) // the lease was lost: others have its messages
        batch = []
      }
    }
  }
}

const [command, type, ...bodies] = process.argv.slice(2)
if (!process.env.DATABASE_URL || !type || !(command === 'consume' || (command === 'send' && bodies.length > 0))) {
  console.error('usage: DATABASE_URL=… node queue.js send TYPE BODY… | consume TYPE')
  process.exit(2)
}
const stop = new AbortController()
let db
try {
  db = await connect(process.env.DATABASE_URL)
  if (command === 'send') {
    await send(db, type, bodies)
  } else {
    for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort())
    await consume(db, type, stop.signal)
  }
} catch (error) {
  console.error(`queue.js: ${error.number ? `${error.number} ` : ''}${error.message}`)
  process.exitCode = 1
} finally {
  await db?.end().catch(() => {})
}
