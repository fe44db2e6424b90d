/**
 * Your own connection: a client or pool of pg; a connection or pool of mysql2, with promises or callbacks; a database or
 * transaction of node-firebird; Knex or its transaction; Sequelize or its transaction; a DataSource, QueryRunner or EntityManager
 * of TypeORM. A call joins the transaction that is open on it.
 */
export type Connection =
  | { query (sql: string, values?: any[]): any }
  | { queryAsync (sql: string, values?: any[]): Promise<any> }
  | { raw (sql: string, values: any[]): any }
  | { getDialect (): string }
  | { LOCK: object, rollback (): Promise<void> }

export interface BatchOptions {
  /** When the messages become due; default now. */
  runAt?: Date
  /** Seconds from now until the messages become due; instead of `runAt`. */
  delaySeconds?: number
  /** -32,768 to 32,767; smaller numbers are claimed first; default 0. */
  priority?: number
  /** The group of the messages, for ordered queues and limits per group. */
  groupKey?: string
  /** Attempts before a message becomes a dead letter; default the queue's. */
  maxAttempts?: number
  /** Metadata of each message, such as a trace context. */
  headers?: Record<string, unknown>
  /** The sending process; default the connection's application name. */
  source?: string
}

export interface SendOptions extends BatchOptions {
  /** At most one live message of this type has this key. */
  dedupKey?: string
  /** What happens to the live message with this key; default keep. */
  onConflict?: 'keep' | 'replace' | 'postpone'
}

export interface Sent {
  /** The new message's number, or that of the live message with the `dedupKey`. */
  id: number
  /** False when a live message has the `dedupKey`. */
  created: boolean
  /** True when the live message was replaced or postponed. */
  changed: boolean
  /** `N`; `A` (claimed) or `E` (dead) only if `created` is false. */
  state: 'N' | 'A' | 'E'
}

export interface Message {
  readonly id: number
  readonly type: string
  /** Exactly as it was sent. */
  readonly body: string
  readonly headers: Record<string, unknown> | null
  readonly priority: number
  readonly groupKey: string | null
  readonly dedupKey: string | null
  /** The number of this attempt, from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly source: string | null
  readonly createdAt: Date
  /** When it was due first. */
  readonly runAt: Date
  /** Proves that this consumer holds the lease. */
  readonly batchKey: string
}

/** Sends one message, in the transaction that is open on the connection. */
export function send (connection: Connection, type: string, body: string, options?: SendOptions): Promise<Sent>

/** Sends up to 10,000 messages in one call: all or none. Returns their number. */
export function sendBatch (
  connection: Connection, type: string, bodies: readonly string[], options?: BatchOptions
): Promise<number>

/**
 * Completes a message in the handler's own transaction, so that its effect happens exactly once. The consumer knows of it. Throws a
 * QueueError with the code `lease_lost` when another consumer may have the message: roll back.
 */
export function complete (connection: Connection, message: Message): Promise<void>

/** Calls any other procedure. All arguments are given; null is the default. Returns its rows, with the names of the columns. */
export function call (connection: Connection, procedure: string, ...values: unknown[]): Promise<Record<string, any>[]>

export interface ConsumerOptions {
  /** Messages that are handled at the same time; default 1. */
  concurrency?: number
  /** How long a message stays with this consumer after its process died; default 60. Leases are extended while handlers run. */
  leaseSeconds?: number
  /** The consumer's name in the database; default the host and the process. */
  name?: string
  /** End when no message is ready; default false. */
  drain?: boolean
  /** More options of the driver, such as `ssl`. */
  driverOptions?: object
  /** Gets a line about each failure; default console.error. */
  log?: (line: string) => void
}

export interface Context {
  /** Aborted when the lease of the message is lost, or the consumer ended with an error: another consumer gets the message. */
  signal: AbortSignal
}

/** What it throws fails the message: Retry and DeadLetter say how, any other error means the backoff of the queue. */
export type Handler = (message: Message, context: Context) => unknown

export class Consumer {
  /** `url`: postgresql://, mysql://, mariadb:// or firebird://. The consumer has connections of its own. */
  constructor (url: string, type: string, handler: Handler, options?: ConsumerOptions)
  /**
   * Handles messages until `stop` is called. Waits while the database cannot be reached, and rejects with any other error. Can be
   * called once.
   */
  run (): Promise<void>
  /** No more messages are claimed; `run` ends when those at hand are handled and reported. */
  stop (): void
  /** True while messages can be claimed: for a readiness probe. */
  readonly isReady: boolean
}

/** One of the queue's own errors, such as 50002 `invalid_argument`. `cause` is the driver's error. */
export class QueueError extends Error {
  private constructor ()
  readonly number: number
  readonly code: string
}

/** Thrown by a handler: the message can never succeed and becomes a dead letter. */
export class DeadLetter extends Error {
  constructor (reason?: string, options?: { cause?: unknown })
}

/** Thrown by a handler: retry the message after this time instead of the queue's backoff. */
export class Retry extends Error {
  constructor (reason?: string, options?: { afterSeconds?: number, cause?: unknown })
  readonly afterSeconds: number | undefined
}
