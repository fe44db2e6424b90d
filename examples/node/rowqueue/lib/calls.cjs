'use strict'
// Calls on the application's own connection. Each kind of connection knows its database, how parameters are written, and how a
// statement is run: `run` returns the rows of the procedure's one result.
const { translated } = require('./errors.cjs')

const ENGINES = { postgres: 'postgresql', postgresql: 'postgresql', mariadb: 'mysql', mysql: 'mysql' }
const question = () => '?'
const dollar = n => `$${n}`

// mysql2 returns [results, fields]; a call has one result with rows and then its end.
const mysql2 = connection => ({
  engine: 'mysql', mark: question, run: async (sql, values) => (await connection.query(sql, values))[0][0]
})

const KINDS = [
  function knex (connection) {
    const engine = ENGINES[connection.client?.dialect]
    if (!engine || typeof connection.raw !== 'function') return
    const run = async (sql, values) => {
      const result = await connection.raw(sql, values)
      return engine === 'mysql' ? result[0][0] : result.rows
    }
    return { engine, mark: question, run }
  },

  // A transaction, or Sequelize itself.
  function sequelize (connection) {
    const sequelize = connection.sequelize ?? connection
    if (typeof sequelize.getDialect !== 'function') return
    const transaction = sequelize === connection ? undefined : connection
    const engine = ENGINES[sequelize.getDialect()]
    const run = async (sql, values) => {
      const result = await sequelize.query(sql, { bind: values, transaction })
      return engine === 'mysql' ? result : result[0]
    }
    return { engine, mark: dollar, run }
  },

  // An EntityManager, a QueryRunner or a DataSource.
  function typeorm (connection) {
    const engine = ENGINES[(connection.dataSource ?? connection.connection ?? connection).options?.type]
    if (!engine || typeof connection.query !== 'function') return
    const run = async (sql, values) => {
      const result = await connection.query(sql, values)
      return engine === 'mysql' ? result[0] : result
    }
    return { engine, mark: engine === 'mysql' ? question : dollar, run }
  },

  // A database or a transaction. Its options decide whether names are in capitals.
  function firebird (connection) {
    if (typeof connection.queryAsync !== 'function') return
    const lower = row => Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]))
    const run = async (sql, values) => (await connection.queryAsync(sql, values)).map(lower)
    return { engine: 'firebird', mark: question, run }
  },

  function mysqlWithCallbacks (connection) {
    if (typeof connection.promise === 'function') return mysql2(connection.promise())
  },

  function mysqlWithPromises (connection) {
    if (typeof connection.query === 'function' && typeof connection.execute === 'function') return mysql2(connection)
  },

  function pg (connection) {
    if (typeof connection.query !== 'function') return
    return { engine: 'postgresql', mark: dollar, run: async (sql, values) => (await connection.query(sql, values)).rows }
  }
]

function kindOf (connection) {
  for (const kind of KINDS) {
    const found = connection && kind(connection)
    if (found) return found
  }
  throw new TypeError('rowqueue: not a connection or transaction of pg, mysql2, node-firebird, Knex, Sequelize or TypeORM')
}

const BEGINNINGS = { postgresql: 'SELECT * FROM mq.', mysql: 'CALL mq_', firebird: 'SELECT * FROM mq_' }

async function call (connection, procedure, ...values) {
  const { engine, mark, run } = kindOf(connection)
  const places = values.map((_, index) => mark(index + 1)).join(', ')
  try {
    return await run(`${BEGINNINGS[engine]}${procedure}(${places})`, values)
  } catch (error) {
    throw translated(error)
  }
}

// { delaySeconds: 60 } is {"delay_seconds":60}. The database refuses names that it does not know.
function optionsText ({ headers, ...options }) {
  const named = Object.entries(options).map(([name, value]) => [name.replace(/[A-Z]/g, big => `_${big.toLowerCase()}`), value])
  return JSON.stringify({ ...Object.fromEntries(named), headers: headers && JSON.stringify(headers) })
}

async function send (connection, type, body, options = {}) {
  const [row] = await call(connection, 'send_with', type, body, optionsText(options))
  return { id: Number(row.id), created: Number(row.created) === 1, changed: Number(row.changed) === 1, state: row.state }
}

async function sendBatch (connection, type, bodies, options = {}) {
  if (bodies.length === 0) return 0
  const list = bodies.map(body => JSON.stringify(body)).join('\n')
  const [row] = await call(connection, 'send_batch', type, list, optionsText(options))
  return Number(row.affected)
}

const completed = new WeakSet() // messages that their handlers have completed

async function complete (connection, message) {
  await call(connection, 'complete', message.id, message.batchKey)
  completed.add(message)
}

module.exports = { call, complete, completed, send, sendBatch }
