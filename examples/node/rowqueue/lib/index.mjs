export { Consumer, DeadLetter, QueueError, Retry, call, complete, send, sendBatch } from './index.cjs'
