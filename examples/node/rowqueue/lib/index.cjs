'use strict'
const { call, complete, send, sendBatch } = require('./calls.cjs')
const { Consumer } = require('./consumer.cjs')
const { DeadLetter, QueueError, Retry } = require('./errors.cjs')

module.exports = { Consumer, DeadLetter, QueueError, Retry, call, complete, send, sendBatch }
