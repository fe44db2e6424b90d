// What compiles and what does not: each line after @ts-expect-error must be an error.
import firebird from 'node-firebird'
import knex from 'knex'
import mysqlWithCallbacks from 'mysql2'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { Consumer, DeadLetter, QueueError, Retry, call, complete, send, sendBatch } from 'rowqueue'
import type { Connection, Context, Handler, Message, SendOptions, Sent } from 'rowqueue'

export async function connections (
  client: pg.Client, pool: pg.Pool, ofPool: pg.PoolClient,
  connection: mysql.Connection, mysqlPool: mysql.Pool, callbacks: mysqlWithCallbacks.Connection,
  db: firebird.Database, tx: firebird.Transaction,
  sequelize: Sequelize, source: DataSource
): Promise<Sent[]> {
  const all: Connection[] = [client, pool, ofPool, connection, mysqlPool, callbacks, db, tx, sequelize, source, source.manager]
  all.push(await knex({ client: 'pg' }).transaction(), await sequelize.transaction(), source.createQueryRunner())
  return Promise.all(all.map(each => send(each, 'email', '{}')))
}

export async function calls (client: pg.Client): Promise<void> {
  const options: SendOptions = { runAt: new Date(), priority: -1, dedupKey: 'a', onConflict: 'replace', headers: { trace: '7' } }
  const sent = await send(client, 'email', '{}', options)
  const id: number = sent.id
  const count: number = await sendBatch(client, 'email', ['a', 'b'], { delaySeconds: 60 })
  const rows = await call(client, 'queue_stats', 'email')
  console.log(id, count, rows[0]?.ready, sent.created satisfies boolean, sent.state satisfies 'N' | 'A' | 'E')
  // @ts-expect-error: the body is a text
  await send(client, 'email', { to: 'ada@example.org' })
  // @ts-expect-error: no such option
  await send(client, 'email', '{}', { delay: 60 })
  // @ts-expect-error: a key is for one message
  await sendBatch(client, 'email', ['a'], { dedupKey: 'a' })
  // @ts-expect-error: not a connection
  await send('postgresql://localhost', 'email', '{}')
  // @ts-expect-error: it is no number
  const wrong: string = sent.id
  console.log(wrong)
}

const handler: Handler = async (message: Message, { signal }: Context) => {
  if (message.attempt > 1) throw new Retry('busy', { afterSeconds: 30 })
  if (message.headers === null) throw new DeadLetter('no such address', { cause: signal.reason })
  // @ts-expect-error: a message is not to be changed
  message.body = ''
}

export async function consumers (client: pg.Client, message: Message): Promise<void> {
  const consumer = new Consumer('postgresql://localhost', 'email', handler, { concurrency: 4, driverOptions: { ssl: true } })
  console.log(new Consumer('mysql://localhost', 'email', () => {}), consumer.isReady satisfies boolean)
  await complete(client, message).catch(error => { if (!(error instanceof QueueError && error.code === 'lease_lost')) throw error })
  consumer.stop()
  await consumer.run()
  // @ts-expect-error: no such option
  console.log(new Consumer('postgresql://localhost', 'email', handler, { batch: 4 }))
  // @ts-expect-error: it can only be read
  consumer.isReady = true
}
