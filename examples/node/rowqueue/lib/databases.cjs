'use strict'
// A consumer's own connections. `connect` returns: `connection`, to call procedures on; `wait`, which returns when there may be a
// message or the time is up; `close`; and `broken`, the error that has ended a connection while it was idle.
const { createHash } = require('node:crypto')
const { EventEmitter, once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const { call } = require('./calls.cjs')

const IDLE_SECONDS = 2 // messages become due and leases run out without a notification

// Waits for an event of `bell`, or until the time is up. It does not keep a process alive that has nothing else to do.
const waitFor = (bell, event, connection, type) => async () => {
  const done = new AbortController()
  const { signal } = done
  const notified = once(bell, event, { signal }).catch(() => {}) // before the query, to miss none
  try {
    const [{ ready }] = await call(connection, 'wait_for_message', type, 0)
    const time = () => sleep(IDLE_SECONDS * 1000, undefined, { signal, ref: false }).catch(() => {})
    if (Number(ready) === 0) await Promise.race([notified, time()])
  } finally {
    done.abort()
  }
}

async function connectPostgreSQL (url, type, options) {
  const { Client } = require('pg')
  const client = new Client({ keepAlive: true, ...options, connectionString: url })
  const wait = waitFor(client, 'notification', client, type)
  const database = { connection: client, wait, close: () => client.end(), broken: undefined }
  client.on('error', error => { database.broken = error })
  await client.connect()
  await client.query(`LISTEN mq_${createHash('md5').update(type).digest('hex')}`)
  return database
}

// No answer of the server at all, or: connection exception, operator intervention, insufficient resources.
const isOutageOfPostgreSQL = error => isOfNetwork(error) || (!error.severity
  ? /^Connection terminated|not queryable|timeout/.test(error.message)
  : /^(08|57P|53)/.test(error.code))

const isOfNetwork = error => error.syscall !== undefined || (error.errors ?? []).some(each => each.syscall !== undefined)

async function connectMySQL (url, type, options) {
  const mysql = require('mysql2/promise')
  const settings = { charset: 'utf8mb4', ...options, uri: url.replace(/^mariadb:/, 'mysql:'), timezone: 'Z' }
  // A wait occupies its connection, so it has another one.
  const connection = await mysql.createConnection(settings)
  const waiting = await mysql.createConnection(settings)
  const database = {
    connection,
    wait: () => call(waiting, 'wait_for_message', type, IDLE_SECONDS),
    close: () => {
      // It may be in the midst of a wait. The driver's own `destroy` lets the server end it, and the process lives on until then.
      waiting.connection.stream.destroy()
      return connection.end()
    },
    broken: undefined
  }
  for (const client of [connection, waiting]) client.on('error', error => { database.broken = error })
  return database
}

// Errors that end a connection and are not the server's answer to a login; or: too many connections, shutdown, connection killed.
const isOutageOfMySQL = error =>
  [1040, 1053, 1927, 4031].includes(error.errno) || isOfNetwork(error) || (error.fatal === true && !(error.errno >= 1000))

async function connectFirebird (url, type, options) {
  const firebird = require('node-firebird')
  // A pool, because other connections of this driver connect again by themselves when they are lost.
  const pool = firebird.pool(2, { ...options, ...firebird.parseConnectionUri(url), lowercase_keys: true, blobAsText: true })
  const client = await pool.getAsync()
  // READ COMMITTED RECORD_VERSION NO WAIT: what claims need. The driver's READ_COMMITTED is without RECORD_VERSION.
  const level = { isolation: firebird.ISOLATION_READ_UNCOMMITTED, wait: false }
  // One after the other: two transactions of one connection wait for each other's locks, and the server reads no commit
  // meanwhile. A late heartbeat could then lose the lease that it was to extend.
  let last = Promise.resolve()
  const queryAsync = (sql, values) => {
    const result = last.then(() => client.withTransaction(own => own.queryAsync(sql, values), level))
    last = result.catch(() => {})
    return result.then(rows => rows.map(inUTC))
  }
  const connection = { queryAsync }
  // Events use a second port of the server. If a firewall blocks it, the server never answers on the connection that asks for
  // them: so it is a separate connection, nothing waits for it, and the poll finds the messages.
  const bell = new EventEmitter()
  pool.getAsync().then(async ears => {
    const events = await ears.attachEventAsync()
    events.on('post_event', () => bell.emit('event')).on('error', () => {})
    events.registerEvent([`mq_${[...type].slice(0, 30).join('')}`.replace(/ +$/, '')], () => {})
  }).catch(() => {})
  return {
    connection,
    wait: waitFor(bell, 'event', connection, type),
    close: async () => {
      await client.detachAsync()
      await pool.destroyAsync()
    },
    broken: undefined
  }
}

// The driver takes the times of the database, which are UTC, for those of the process's zone.
function inUTC (row) {
  const corrected = date => new Date(Date.UTC(
    date.getFullYear(), date.getMonth(), date.getDate(),
    date.getHours(), date.getMinutes(), date.getSeconds(), date.getMilliseconds()
  ))
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value instanceof Date ? corrected(value) : value]))
}

// Network error, connection lost to the server, connection shut down; or the driver's own words.
const isOutageOfFirebird = error =>
  isOfNetwork(error) || [335544721, 335544726, 335544727, 335544741, 335544856].includes(error.gdscode) ||
  /connection is closed|socket/i.test(error.message)

function connect (url, type, options) {
  if (url.startsWith('postgres')) return connectPostgreSQL(url, type, options)
  return url.startsWith('firebird') ? connectFirebird(url, type, options) : connectMySQL(url, type, options)
}

// Whether the error says that the database cannot be reached.
function isOutage (url, error) {
  if (url.startsWith('postgres')) return isOutageOfPostgreSQL(error)
  return url.startsWith('firebird') ? isOutageOfFirebird(error) : isOutageOfMySQL(error)
}

module.exports = { connect, isOutage }
