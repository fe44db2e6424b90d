// An API that sends a mail after an order is saved, with its consumer in the same process.
//
// Usage:  npm install && npx tsc shop.ts --module nodenext --target es2022 --strict && DATABASE_URL=postgresql://… node shop.js
import express from 'express'
import pg from 'pg'
import { Consumer, complete, send, type Message } from 'rowqueue'

const url = process.env.DATABASE_URL ?? 'postgresql:///shop'
const pool = new pg.Pool({ connectionString: url })
pool.on('error', error => console.error(error.message)) // an idle connection was lost

async function transaction<T> (work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}

const app = express()

app.post('/orders', async (request, response) => {
  const id = await transaction(async client => {
    const { rows } = await client.query('INSERT INTO orders (customer) VALUES ($1) RETURNING id', [request.query.customer])
    await send(client, 'email', JSON.stringify({ order: rows[0].id }))
    return rows[0].id
  })
  response.status(201).json({ id })
})

async function sendMail (message: Message): Promise<void> {
  const { order } = JSON.parse(message.body)
  await transaction(async client => {
    await client.query('UPDATE orders SET mailed = mailed + 1 WHERE id = $1', [order])
    await complete(client, message)
  })
}

const consumer = new Consumer(url, 'email', sendMail, { concurrency: 10 })
app.get('/ready', (request, response) => { response.sendStatus(consumer.isReady ? 200 : 503) })

const server = app.listen(process.env.PORT ?? 8000, () => console.error('listening on', server.address()))
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => {
    consumer.stop()
    server.close()
  })
}
await consumer.run()
await pool.end()
