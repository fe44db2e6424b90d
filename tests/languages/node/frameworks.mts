// Run by test_node.py: node frameworks.mjs TYPE, with DATABASE_URL. In each framework: an order and its message are committed, the
// next ones are rolled back, and an error of the queue has its number.
import knex from 'knex'
import mysqlWithCallbacks from 'mysql2'
import pg from 'pg'
import { Sequelize } from 'sequelize'
import 'reflect-metadata'
import { DataSource } from 'typeorm'
import { send, sendBatch } from 'rowqueue'
import type { Connection } from 'rowqueue'

const url = (process.env.DATABASE_URL ?? '').replace(/^mariadb:/, 'mysql:')
const type = process.argv[2] ?? ''
const isPostgreSQL = url.startsWith('postgres')

const taken = new Error('taken back')

// `transaction` runs work in a transaction, which is rolled back when the work throws.
async function check (name: string, transaction: (work: (connection: Connection, store: Store) => Promise<void>) => Promise<void>) {
  await transaction(async (connection, store) => {
    await store(name)
    const sent = await send(connection, type, name, { delaySeconds: 60 })
    if (!sent.created || !(sent.id > 0) || sent.state !== 'N') throw new Error(JSON.stringify(sent))
    if (await sendBatch(connection, type, [name, `back\\slash ? $1 :x 'quote' ${name}`]) !== 2) throw new Error('not 2')
  })
  const error = await transaction(async (connection, store) => {
    await store(`${name} taken back`)
    await send(connection, type, `${name} taken back`)
    throw taken
  }).catch(error => error)
  if (error !== taken) throw error
  const refused = await transaction(async connection => { await send(connection, 'x'.repeat(201), '{}') }).catch(error => error)
  console.log(JSON.stringify([name, refused.number, refused.code, refused.message]))
}
type Store = (body: string) => Promise<unknown>

const database = knex({ client: isPostgreSQL ? 'pg' : 'mysql2', connection: url })
await check('knex', work => database.transaction(trx => work(trx, body => trx('orders').insert({ body }))))
await database.destroy()

const sequelize = new Sequelize(url, { logging: false, dialect: isPostgreSQL ? 'postgres' : 'mysql' })
await check('sequelize', work => sequelize.transaction(transaction => work(transaction, body =>
  sequelize.query('INSERT INTO orders (body) VALUES ($1)', { bind: [body], transaction }))))
await sequelize.close()

const source = await new DataSource({ type: isPostgreSQL ? 'postgres' : 'mysql', url }).initialize()
const insert = `INSERT INTO orders (body) VALUES (${isPostgreSQL ? '$1' : '?'})`
await check('typeorm', work => source.transaction(manager => work(manager, body => manager.query(insert, [body]))))
const runner = source.createQueryRunner()
await check('queryrunner', async work => {
  await runner.startTransaction()
  try {
    await work(runner, body => runner.query(insert, [body]))
    await runner.commitTransaction()
  } catch (error) {
    await runner.rollbackTransaction()
    throw error
  }
})
await runner.release()
await source.destroy()

if (isPostgreSQL) {
  const pool = new pg.Pool({ connectionString: url })
  await check('pool', async work => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await work(client, body => client.query(insert, [body]))
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  })
  await pool.end()
} else {
  const connection = mysqlWithCallbacks.createConnection(url)
  await check('callbacks', async work => {
    const promises = connection.promise()
    await promises.beginTransaction()
    try {
      await work(connection, body => promises.query(insert, [body]))
      await promises.commit()
    } catch (error) {
      await promises.rollback()
      throw error
    }
  })
  await connection.promise().end()
}
