// A producer and a consumer in Node: copy this file, then change `store` and `handle`.
//
// Usage:  npm install && DATABASE_URL=postgresql://… node queue.js send TYPE BODY…     (or mysql://, mariadb://, firebird://)
//         node queue.js consume TYPE      BATCH_SIZE and LEASE_SECONDS change the defaults; SIGTERM ends it
//
// `send` stores rows of the application and sends the messages in one transaction: all of it happens or nothing.
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const SIZE = Number(process.env.BATCH_SIZE ?? 20)
const LEASE_SECONDS = Number(process.env.LEASE_SECONDS ?? 60)
const IDLE_SECONDS = 2 // messages become due and leases run out without a notification

// PostgreSQL's SQLSTATEs; MySQL's and MariaDB's numbers; Firebird's: deadlock, lock conflict, update conflict
const CONFLICTS = new Set(['40001', '40P01', 1020, 1205, 1213, 335544336, 335544345, 335544451])

class QueueError extends Error {} // one of the contract's: number 50002, name invalid_argument
class GiveUp extends Error {} // thrown by a handler: dead-letter the message now

// ---- The application's own part ----

const store = (db, body) => db.query('INSERT INTO orders (body) VALUES (?)', [body])

async function handle (message) {
  if (message.body.startsWith('raise ')) throw new Error(message.body.slice(6))
  if (message.body === 'retry' && message.attempt === 1) throw new Error('not yet')
  if (message.body === 'dead') throw new GiveUp('no such address')
  if (message.body === 'slow') await sleep(4000)
  appendFileSync(process.env.HANDLED, JSON.stringify([message.id, message.body]) + '\n')
}

// ---- The queue ----

// A connection: `query` takes ? for parameters on each database, `call` returns the rows of a procedure, all of whose arguments
// are given, and `wait` returns when there may be a message or the time is up.
async function connect (url) {
  const connectTo = url.startsWith('postgres') ? connectPostgreSQL : url.startsWith('firebird') ? connectFirebird : connectMySQL
  const db = await connectTo(url)
  return { ...db, call: (...call) => db.call(...call).catch(translate) }
}

// The three statements of a transaction, where they are plain SQL.
const transactions = query => ({
  begin: () => query('START TRANSACTION'),
  commit: () => query('COMMIT'),
  rollback: () => query('ROLLBACK')
})

// Waits for an event of `bell`, or until the time is up or `signal` says so.
const waitFor = (bell, event, call) => async (type, signal) => {
  const done = new AbortController()
  const either = { signal: AbortSignal.any([signal, done.signal]) }
  const notified = once(bell, event, either).catch(() => {}) // before the query, to miss none
  const [{ ready }] = await call('wait_for_message', type, 0)
  if (!ready) await Promise.race([notified, sleep(IDLE_SECONDS * 1000, null, either).catch(() => {})])
  done.abort()
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
  const wait = waitFor(client, 'notification', call)
  return { query, call, ...transactions(query), listen, wait, end: () => client.end() }
}

async function connectMySQL (url) {
  const { default: mysql } = await import('mysql2/promise')
  const client = await mysql.createConnection({ uri: url.replace(/^mariadb:/, 'mysql:'), timezone: 'Z', charset: 'utf8mb4' })
  client.on('error', () => {})
  const query = async (sql, values) => (await client.query(sql, values))[0]
  await query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED') // for claims in a handler's transaction
  // A call has one result with rows and then its end; the driver reads both and throws a late error.
  const call = async (name, ...values) => (await query(`CALL mq_${name}(${values.map(() => '?').join(', ')})`, values))[0]
  const wait = type => call('wait_for_message', type, IDLE_SECONDS)
  return { query, call, ...transactions(query), listen: async () => {}, wait, end: () => client.end() }
}

async function connectFirebird (url) {
  const { default: firebird } = await import('node-firebird')
  // A pool, because other connections of this driver connect again by themselves when they are lost.
  const pool = firebird.pool(2, { ...firebird.parseConnectionUri(url), lowercase_keys: true, blobAsText: true })
  const client = await pool.getAsync()
  // READ COMMITTED RECORD_VERSION NO WAIT: what claims need. The driver's READ_COMMITTED is without RECORD_VERSION.
  const options = { isolation: firebird.ISOLATION_READ_UNCOMMITTED, wait: false }
  let open // the transaction of `begin`; without it each statement has its own
  // One after the other: two transactions of one connection wait for each other's locks, and the server reads no commit
  // meanwhile. A late heartbeat could then lose the lease that it was to extend.
  let last = Promise.resolve()
  const alone = (sql, values) => {
    const result = last.then(() => client.withTransaction(own => own.queryAsync(sql, values), options))
    last = result.catch(() => {})
    return result
  }
  const query = (sql, values) => open ? open.queryAsync(sql, values) : alone(sql, values)
  const call = (name, ...values) => query(`SELECT * FROM mq_${name}(${values.map(() => '?').join(', ')})`, values)
  const begin = async () => { open = await client.transactionAsync(options) }
  const close = how => open[how]().then(() => { open = undefined })
  // Events use a second port of the server. If a firewall blocks it, the server never answers on the connection that asks for
  // them: so it is a separate connection, nothing waits for it, and the poll finds the messages.
  const bell = new EventEmitter()
  const listen = async type => {
    const complain = error => error && console.error(`no events: ${error.message}`)
    const register = async () => {
      const events = await (await pool.getAsync()).attachEventAsync()
      events.on('post_event', () => bell.emit('event')).on('error', complain)
      events.registerEvent([`mq_${[...type].slice(0, 30).join('')}`.replace(/ +$/, '')], complain)
    }
    register().catch(complain)
  }
  const wait = waitFor(bell, 'event', call)
  const end = () => client.detachAsync().then(() => pool.destroyAsync())
  return { query, call, begin, commit: () => close('commitAsync'), rollback: () => close('rollbackAsync'), listen, wait, end }
}

function translate (error) {
  // Firebird's text is `Exception 2, MQ_50002, invalid_argument: …, At procedure …`.
  const [, raised, text = error.message] = /^Exception \d+, MQ_(\d+), (.*?)(?:, At \w+ '|$)/s.exec(error.message) ?? []
  const number = Number(raised ?? error.errno ?? error.code) // or MySQL's error number, or PostgreSQL's SQLSTATE
  if (!(number >= 50001 && number <= 50099)) throw error
  throw Object.assign(new QueueError(text, { cause: error }), { number, name: text.split(':')[0] })
}

// Deadlocks and conflicts roll the transaction back: the whole `work` is repeated.
async function repeat (work) {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const again = CONFLICTS.has(error.code ?? error.gdscode) || CONFLICTS.has(error.errno)
      if (!again || tries === 10) throw error
      await sleep(Math.random() * 20 * 2 ** tries)
    }
  }
}

const transaction = (db, work) => repeat(async () => {
  await db.begin()
  try {
    await work()
    await db.commit()
  } catch (error) {
    await db.rollback().catch(() => {})
    throw error
  }
})

const send = (db, type, bodies) => transaction(db, async () => {
  for (const body of bodies) {
    await store(db, body)
    await db.call('send', type, body)
  }
})

// A line of finish_batch's list of outcomes, or undefined if the message is done.
async function attempt (message) {
  try {
    await handle(message)
  } catch (error) {
    console.error(`message ${message.id} failed (attempt ${message.attempt}): ${error.message}`)
    const text = error.message.replaceAll('\0', '').toWellFormed() // databases refuse NUL and half a surrogate pair
    return JSON.stringify({ id: Number(message.id), error: text, dead: error instanceof GiveUp })
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
      const outcomes = (await Promise.all(batch.map(attempt))).filter(Boolean)
      clearInterval(heartbeat)
      try {
        batch = await call('finish_batch', key, outcomes.join('\n') || null, signal.aborted ? 0 : SIZE)
      } catch (error) {
        if (error.number !== 50008) throw error
        console.error(`50008 ${error.message}`) // the lease was lost: other consumers have its messages
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
process.exit()
