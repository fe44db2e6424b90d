// Run by test_node.py: node program.mjs COMMAND ARGUMENT…, with DATABASE_URL. A line of JSON on standard output is an event.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { Consumer, DeadLetter, Retry, complete, send, sendBatch } from 'rowqueue'
import type { Connection, Context, Message } from 'rowqueue'

const url = process.env.DATABASE_URL ?? ''
const isPostgreSQL = url.startsWith('postgres')

interface Session {
  connection: Connection
  run (sql: string, values?: unknown[]): Promise<unknown>
  end (): Promise<void>
}

async function open (): Promise<Session> {
  if (isPostgreSQL) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    const run = (sql: string, values?: unknown[]) => client.query(sql.replace('?', '$1'), values)
    return { connection: client, run, end: () => client.end() }
  }
  const connection = await mysql.createConnection(url.replace(/^mariadb:/, 'mysql:'))
  connection.on('error', () => {})
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
  return { connection, run: (sql, values) => connection.query(sql, values), end: () => connection.end() }
}

const event = (name: string, value: unknown): void => console.log(JSON.stringify([name, value]))

let running = 0

async function effect (message: Message, { signal }: Context): Promise<void> {
  const { connection, run, end } = await open()
  try {
    await run('START TRANSACTION')
    await run('INSERT INTO orders (body) VALUES (?)', [message.body])
    if (message.body.endsWith('lost')) {
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      event('aborted', message.id)
    }
    await complete(connection, message)
    await run('COMMIT')
  } catch (error) {
    await run('ROLLBACK')
    throw error
  } finally {
    await end()
  }
}

async function handle (message: Message, context: Context): Promise<void> {
  running++
  event('begin', { body: message.body, running, attempt: message.attempt })
  try {
    const [word, argument] = message.body.split(' ')
    if (word === 'wait') while (!existsSync(argument ?? '')) await sleep(20)
    if (word === 'sleep') await sleep(Number(argument))
    if (word === 'block') for (const end = Date.now() + Number(argument); Date.now() < end;); // the event loop stands still
    if (word === 'effect') await effect(message, context)
    if (word === 'dead') throw new DeadLetter('no such address')
    if (word === 'retry' && message.attempt === 1) throw new Retry('busy', { afterSeconds: Number(argument) })
    if (word === 'null') throw null
    if (word === 'odd') throw Object.create(null)
    if (word === 'empty') throw new Error('')
  } finally {
    running--
  }
  const { body, headers, groupKey, dedupKey, priority, source, maxAttempts, createdAt, runAt } = message
  event('end', { body, headers, groupKey, dedupKey, priority, source, maxAttempts, createdAt, runAt })
}

async function consume (type: string, options: string): Promise<void> {
  const consumer = new Consumer(url, type, handle, JSON.parse(options))
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => consumer.stop())
  const ready = setInterval(() => { if (consumer.isReady) { event('ready', type); clearInterval(ready) } }, 10)
  try {
    await consumer.run()
    event('ended', consumer.isReady)
  } finally {
    clearInterval(ready)
  }
}

async function produce (type: string): Promise<void> {
  const { connection, run, end } = await open()
  await run('START TRANSACTION')
  await run('INSERT INTO orders (body) VALUES (?)', ['rolled back'])
  await send(connection, type, 'rolled back')
  await run('ROLLBACK')
  await run('START TRANSACTION')
  await run('INSERT INTO orders (body) VALUES (?)', ['committed'])
  const headers = { trace: '7', text: 'é "x"\n' }
  const runAt = new Date('2026-01-02T03:04:05.678Z')
  const options = { runAt, priority: -3, groupKey: 'g', dedupKey: 'd', maxAttempts: 7, headers, source: 'the test' }
  event('sent', await send(connection, type, 'committed', options))
  event('sent', await send(connection, type, 'replaced', { dedupKey: 'd', onConflict: 'replace' }))
  event('sent', await send(connection, type, 'later', { delaySeconds: 3600 }))
  await run('COMMIT')
  event('sent', await sendBatch(connection, type, ['', 'two\nlines', '"quoted"', 'é😀'], { priority: 5 }))
  event('sent', await sendBatch(connection, type, []))
  for (const work of [
    () => send(connection, '', 'no type'),
    () => send(connection, type, 'unknown', JSON.parse('{"delay": 1}')),
    () => sendBatch(connection, type, ['x'], { delaySeconds: -1 }),
    () => complete(connection, { id: 1, batchKey: '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2' } as Message),
    () => send({} as Connection, type, 'no connection')
  ]) {
    await work().then(() => event('no error', ''), error => event('error', [error.name, error.number, error.code, error.message]))
  }
  await end()
}

const [command, ...rest] = process.argv.slice(2)
if (command === 'consume') await consume(rest[0] ?? '', rest[1] ?? '{}')
if (command === 'produce') await produce(rest[0] ?? '')
