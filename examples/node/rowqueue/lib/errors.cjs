'use strict'

// PostgreSQL's SQLSTATEs; MySQL's and MariaDB's numbers; Firebird's: deadlock, lock conflict, update conflict
const CONFLICTS = new Set(['40001', '40P01', 1020, 1205, 1213, 335544336, 335544345, 335544451])

class QueueError extends Error {
  constructor (text, number, cause) {
    super(text, { cause })
    this.name = 'QueueError'
    this.number = number
    this.code = text.split(':')[0]
  }
}

class DeadLetter extends Error {
  constructor (reason, options) {
    super(reason, options)
    this.name = 'DeadLetter'
  }
}

class Retry extends Error {
  constructor (reason, { afterSeconds, ...options } = {}) {
    super(reason, options)
    if (afterSeconds !== undefined && !(afterSeconds >= 0)) {
      throw new RangeError(`Retry: afterSeconds is ${afterSeconds}; it must be 0 or more`)
    }
    this.name = 'Retry'
    this.afterSeconds = afterSeconds
  }
}

// The driver's error: Sequelize and TypeORM wrap it.
const driverError = error => error?.original ?? error?.driverError ?? error

// One of the contract's errors as a QueueError; any other as it is.
function translated (error) {
  const { code, errno, message = '' } = driverError(error) ?? {}
  // Firebird's text is `Exception 2, MQ_50002, invalid_argument: …, At procedure …`.
  const [, raised, text] = /^Exception \d+, MQ_(\d+), (.*?)(?:, At \w+ '|$)/s.exec(message) ?? []
  const number = Number(raised ?? errno ?? code) // or MySQL's error number, or PostgreSQL's SQLSTATE
  if (!(number >= 50001 && number <= 50099)) return error
  // Knex writes the statement before the text; the text begins with the error's name.
  return new QueueError(text ?? /(?:^| - )([a-z]+(?:_[a-z]+)+: .*)$/s.exec(message)?.[1] ?? message, number, error)
}

function isConflict (error) {
  const { code, errno, gdscode } = driverError(error) ?? {}
  return CONFLICTS.has(code) || CONFLICTS.has(errno) || CONFLICTS.has(gdscode)
}

module.exports = { DeadLetter, QueueError, Retry, isConflict, translated }
