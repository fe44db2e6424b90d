// The same package in CommonJS.
import pg = require('pg')
import rowqueue = require('rowqueue')

export async function main (client: pg.Client): Promise<number> {
  const consumer = new rowqueue.Consumer('postgresql://localhost', 'email', message => console.log(message.body))
  await consumer.run()
  // @ts-expect-error: the body is missing
  await rowqueue.send(client, 'email')
  return (await rowqueue.send(client, 'email', '{}')).id
}
