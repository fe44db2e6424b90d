// A producer and a consumer: orders and their messages are one transaction, and each message is handled.
//
// Usage:  npm install && DATABASE_URL=postgresql://… node queue.js send TYPE BODY…     (or mysql://, mariadb://, firebird://)
//         node queue.js consume TYPE      CONCURRENCY and LEASE_SECONDS change the defaults; SIGTERM ends it
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Consumer, DeadLetter, send } from 'rowqueue'

// PostgreSQL's SQLSTATEs; MySQL's and MariaDB's numbers; Firebird's: deadlock, lock conflict, update conflict
const CONFLICTS = new Set(['40001', '40P01', 1020, 1205, 1213, 335544336, 335544345, 335544451])

async function handle (message) {
  if (message.body.startsWith('raise ')) throw new Error(message.body.slice(6))
  if (message.body === 'retry' && message.attempt === 1) throw new Error('not yet')
  if (message.body === 'dead') throw new DeadLetter('no such address')
  if (message.body === 'slow') await sleep(4000)
  appendFileSync(process.env.HANDLED, JSON.stringify([message.id, message.body]) + '\n')
}

// Each returns a function that runs `work` in a transaction of the driver. `work` gets the transaction, and a function that
// inserts an order.
async function transactionsOf (url) {
  if (url.startsWith('postgres')) {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    return statements(client, body => client.query('INSERT INTO orders (body) VALUES ($1)', [body]))
  }
  if (url.startsWith('firebird')) {
    const { default: firebird } = await import('node-firebird')
    const db = await firebird.pool(1, firebird.parseConnectionUri(url)).getAsync()
    const options = { isolation: firebird.ISOLATION_READ_UNCOMMITTED, wait: false } // a conflict is an error, not a wait
    return work => db.withTransaction(tx => work(tx, body => tx.queryAsync('INSERT INTO orders (body) VALUES (?)', [body])), options)
  }
  const { default: mysql } = await import('mysql2/promise')
  const connection = await mysql.createConnection({ uri: url.replace(/^mariadb:/, 'mysql:'), charset: 'utf8mb4' })
  return statements(connection, body => connection.query('INSERT INTO orders (body) VALUES (?)', [body]))
}

const statements = (client, store) => async work => {
  await client.query('START TRANSACTION')
  try {
    await work(client, store)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

// Deadlocks and conflicts roll the transaction back: the whole `work` is repeated.
async function repeat (work) {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const again = [error.code, error.errno, error.gdscode].some(number => CONFLICTS.has(number))
      if (!again || tries === 10) throw error
      await sleep(Math.random() * 20 * 2 ** tries)
    }
  }
}

async function produce (url, type, bodies) {
  const transaction = await transactionsOf(url)
  await repeat(() => transaction(async (tx, store) => {
    for (const body of bodies) {
      await store(body)
      await send(tx, type, body)
    }
  }))
}

async function consume (url, type) {
  const concurrency = Number(process.env.CONCURRENCY ?? 10)
  const leaseSeconds = Number(process.env.LEASE_SECONDS ?? 60)
  const consumer = new Consumer(url, type, handle, { concurrency, leaseSeconds })
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => consumer.stop())
  await consumer.run()
}

const url = process.env.DATABASE_URL
const [command, type, ...bodies] = process.argv.slice(2)
if (!url || !type || !(command === 'consume' || (command === 'send' && bodies.length > 0))) {
  console.error('usage: DATABASE_URL=… node queue.js send TYPE BODY… | consume TYPE')
  process.exit(2)
}
try {
  await (command === 'send' ? produce(url, type, bodies) : consume(url, type))
} catch (error) {
  console.error(`queue.js: ${error.number ? `${error.number} ` : ''}${error.message}`)
  process.exitCode = 1
}
process.exit()
