'use strict'
const { hostname } = require('node:os')
const { setTimeout: sleep } = require('node:timers/promises')
const { call, completed } = require('./calls.cjs')
const { connect, isOutage } = require('./databases.cjs')
const { DeadLetter, Retry, isConflict } = require('./errors.cjs')

const LEASE_LOST = 50008
const LONGEST_PAUSE = 5000 // milliseconds between two attempts to connect

const messageOf = row => ({
  id: Number(row.id),
  type: row.type,
  body: row.body,
  headers: row.headers === null ? null : JSON.parse(row.headers),
  priority: row.priority,
  groupKey: row.group_key,
  dedupKey: row.dedup_key,
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  source: row.source,
  createdAt: row.created_at,
  runAt: row.run_at,
  batchKey: row.batch_key
})

// A line of the list of outcomes.
function outcome (id, ...errors) {
  if (errors.length === 0) return JSON.stringify({ id })
  const [error] = errors
  const after = error instanceof Retry ? error.afterSeconds : undefined
  return JSON.stringify({
    id,
    error: textOf(error),
    retry_after_seconds: after === undefined ? undefined : Math.ceil(after),
    dead: error instanceof DeadLetter
  })
}

function textOf (error) {
  try {
    // Databases refuse NUL and half a surrogate pair.
    return String(error?.message || error).replaceAll('\0', '').toWellFormed()
  } catch {
    return 'an error without a text'
  }
}

class Consumer {
  #url
  #type
  #handler
  #concurrency
  #leaseSeconds
  #name
  #driverOptions
  #drain
  #log

  #database // of ./databases.cjs; `waiting` is the promise of its wait
  #isReady = false
  #ran = false
  #stopping = new AbortController()
  #running = 0 // handlers
  #batches = new Set()
  #tell = () => {} // that a handler has ended, or `stop` was called

  constructor (url, type, handler, options = {}) {
    const { concurrency = 1, leaseSeconds = 60, name, driverOptions, drain = false, log = console.error, ...unknown } = options
    const [other] = Object.keys(unknown)
    if (other) throw new TypeError(`Consumer: unknown option ${other}`)
    if (!(Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= 10_000)) {
      throw new RangeError(`Consumer: concurrency is ${concurrency}; it must be an integer from 1 to 10,000`)
    }
    this.#url = url
    this.#type = type
    this.#handler = handler
    this.#concurrency = concurrency
    this.#leaseSeconds = leaseSeconds
    this.#name = name ?? `${hostname()}:${process.pid}`
    this.#driverOptions = driverOptions
    this.#drain = drain
    this.#log = log
  }

  get isReady () {
    return this.#isReady
  }

  stop () {
    this.#stopping.abort()
    this.#tell()
  }

  async run () {
    if (this.#ran) throw new Error('Consumer: run can be called once')
    this.#ran = true
    let heartbeat
    try {
      await this.#connect()
      heartbeat = setInterval(() => this.#extendLeases(), this.#leaseSeconds * 1000 / 3)
      await this.#work()
    } catch (error) {
      for (const batch of this.#batches) batch.lost.abort(error)
      while (this.#running > 0) await this.#change() // no handler outlives `run`
      throw error
    } finally {
      clearInterval(heartbeat)
      this.#isReady = false
      await this.#close()
    }
  }

  // A connection that is broken may never answer.
  async #close () {
    const done = new AbortController()
    const time = sleep(1000, undefined, { signal: done.signal }).catch(() => {})
    await Promise.race([this.#database?.close().catch(() => {}), time])
    done.abort()
  }

  async #work () {
    for (;;) {
      await this.#reconnectIfBroken()
      let { rows, asked } = await this.#finish()
      if (rows.length === 0 && asked === 0 && (asked = this.#free())) {
        rows = await this.#ask('claim_batch', this.#type, asked, this.#name, this.#leaseSeconds)
      }
      this.#start(rows)
      if (asked > 0 && rows.length === asked) continue
      if (this.#hasOutcomes()) continue
      if (this.#running === 0 && (this.#drain || this.#stopping.signal.aborted)) return
      const change = this.#change()
      await (this.#free() > 0 ? Promise.race([change, this.#wait()]) : change)
    }
  }

  #free () {
    return this.#stopping.signal.aborted ? 0 : this.#concurrency - this.#running
  }

  #hasOutcomes () {
    return [...this.#batches].some(batch => batch.outcomes.length > 0 || batch.running === 0)
  }

  // The next change. A new promise each time: one that lives long would keep whatever has ever waited for it.
  #change () {
    return new Promise(resolve => { this.#tell = resolve })
  }

  // ---- Handlers ----

  #start (rows) {
    if (rows.length === 0) return
    const messages = rows.map(messageOf)
    const batch = { key: rows[0].batch_key, messages, running: rows.length, outcomes: [], lost: new AbortController() }
    this.#batches.add(batch)
    for (const message of messages) this.#handle(message, batch)
  }

  async #handle (message, batch) {
    this.#running++
    try {
      await this.#handler(message, { signal: batch.lost.signal })
      if (!completed.has(message)) batch.outcomes.push(outcome(message.id))
    } catch (error) {
      batch.outcomes.push(outcome(message.id, error))
      this.#log(`message ${message.id} of ${message.type} failed (attempt ${message.attempt}): ${textOf(error)}`)
    } finally {
      this.#running--
      batch.running--
      this.#tell()
    }
  }

  // ---- The queue ----

  // Reports what has been handled. The last report of a batch claims the next one: `asked` for so many messages.
  async #finish () {
    for (const batch of this.#batches) {
      const outcomes = batch.outcomes.splice(0)
      const isLast = batch.running === 0
      if (isLast) this.#batches.delete(batch)
      if (outcomes.length === 0 || batch.isLost) continue
      const asked = isLast ? this.#free() : 0
      try {
        if (!isLast) {
          await this.#ask('finish_messages', batch.key, outcomes.join('\n'))
          continue
        }
        const rows = await this.#ask('finish_batch', batch.key, outcomes.join('\n'), asked)
        if (asked > 0) return { rows, asked }
      } catch (error) {
        if (error.number !== LEASE_LOST) throw error
        batch.isLost = true // other consumers have its messages
        batch.lost.abort(error)
        this.#log(`${LEASE_LOST} ${error.message}`)
      }
    }
    return { rows: [], asked: 0 }
  }

  async #extendLeases () {
    const database = this.#database
    for (const batch of this.#batches) {
      try {
        const [{ affected }] = await call(database.connection, 'extend_lease', batch.key, this.#leaseSeconds)
        const isHeld = Number(affected) > 0 || !this.#batches.has(batch) || batch.messages.some(each => completed.has(each))
        if (!isHeld) batch.lost.abort(new Error('the lease was lost'))
      } catch (error) {
        this.#log(`lease not extended: ${textOf(error)}`)
        if (!isOutage(this.#url, error)) continue
        database.broken = error
        this.#tell() // all handlers may be busy for long
        return
      }
    }
  }

  // Waits for a message on the database's waiting connection; a wait outlives the change of a handler.
  #wait () {
    const database = this.#database
    database.waiting ??= database.wait()
      .catch(error => { database.broken = error })
      .finally(() => { database.waiting = undefined })
    return database.waiting
  }

  // Calls a procedure, again after a conflict, and again after the database was not reachable.
  async #ask (procedure, ...values) {
    for (let tries = 1; ; tries++) {
      try {
        await this.#reconnectIfBroken()
        return await call(this.#database.connection, procedure, ...values)
      } catch (error) {
        if (isConflict(error) && tries < 10) {
          await sleep(Math.random() * 20 * 2 ** tries)
        } else if (isOutage(this.#url, error)) {
          this.#database.broken = error
        } else {
          throw error
        }
      }
    }
  }

  async #reconnectIfBroken () {
    const { broken } = this.#database
    if (!broken) return
    if (!isOutage(this.#url, broken)) throw broken
    this.#isReady = false
    this.#database.close().catch(() => {})
    await this.#connect(broken)
    await this.#extendLeases()
  }

  // Until the database can be reached. `error` is the one that has broken the connection before.
  async #connect (error) {
    let pause = 100
    for (let isFirst = !error; ; isFirst = false) {
      if (!isFirst) {
        if (this.#drain || this.#stopping.signal.aborted) throw error
        if (pause === 100) this.#log(`the database is unreachable, trying again: ${textOf(error)}`)
        await sleep(pause, undefined, { signal: this.#stopping.signal }).catch(() => {})
        pause = Math.min(2 * pause, LONGEST_PAUSE)
      }
      try {
        this.#database = await connect(this.#url, this.#type, this.#driverOptions)
        this.#isReady = true
        if (!isFirst) this.#log('the database is reachable again')
        return
      } catch (failure) {
        if (!isOutage(this.#url, failure)) throw failure
        error = failure
      }
    }
  }
}

module.exports = { Consumer }
