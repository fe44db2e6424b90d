-- The tables of the queue on SQL Server. A message is written once. Its state depends on the narrow table that holds its
-- id: ready or delayed (N), claimed (A), dead (E), archive (C). See docs/decisions/0001_tables.md and 0009_sqlserver.md.
-- Only the procedures are a public interface: tables may change in each release.
--
-- Names compare code unit by code unit (BIN2); the server ignores trailing blanks. 400 units hold 200 characters of any
-- kind.

-- Dynamic SQL: CREATE SCHEMA must be the only statement of its batch.
EXEC (N'CREATE SCHEMA mq');
EXEC (N'CREATE SCHEMA mq_internal');

EXEC sys.sp_addextendedproperty N'MS_Description', N'rowqueue: a message queue in SQL. Use the procedures; read the tables only to inspect or repair the queue.',
    N'SCHEMA', N'mq';
EXEC sys.sp_addextendedproperty N'MS_Description', N'What only the queue''s own procedures use.', N'SCHEMA', N'mq_internal';

CREATE TABLE mq.installed (
    name nvarchar(200) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT installed_pk PRIMARY KEY,
    kind varchar(20) NOT NULL,
    sha256 char(64) NOT NULL,
    fingerprint varbinary(32),
    applied_at datetime2(7) NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The installed files (migrations and procedures), one row per object, with their SHA-256.',
    N'SCHEMA', N'mq', N'TABLE', N'installed';

CREATE TABLE mq.queue (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT queue_pk PRIMARY KEY,
    lease_seconds int NOT NULL CONSTRAINT queue_lease_seconds DEFAULT 60,
    max_attempts int NOT NULL CONSTRAINT queue_max_attempts DEFAULT 25,
    backoff_seconds int NOT NULL CONSTRAINT queue_backoff_seconds DEFAULT 5,
    backoff_max_seconds int NOT NULL CONSTRAINT queue_backoff_max_seconds DEFAULT 3600,
    on_complete varchar(7) NOT NULL CONSTRAINT queue_on_complete DEFAULT 'delete',
    ordered bit NOT NULL CONSTRAINT queue_ordered DEFAULT 0,
    ring bit NOT NULL CONSTRAINT queue_ring DEFAULT 0,
    fair bit NOT NULL CONSTRAINT queue_fair DEFAULT 0,
    dead_stops_group bit NOT NULL CONSTRAINT queue_dead_stops_group DEFAULT 0,
    notify bit NOT NULL CONSTRAINT queue_notify DEFAULT 1,
    max_active int NOT NULL CONSTRAINT queue_max_active DEFAULT 0,
    rate int NOT NULL CONSTRAINT queue_rate DEFAULT 0,
    rate_seconds int NOT NULL CONSTRAINT queue_rate_seconds DEFAULT 1,
    group_max_active int NOT NULL CONSTRAINT queue_group_max_active DEFAULT 0,
    group_rate int NOT NULL CONSTRAINT queue_group_rate DEFAULT 0,
    group_rate_seconds int NOT NULL CONSTRAINT queue_group_rate_seconds DEFAULT 1,
    -- 1: ordered, or with limits per group: due messages are in mq.grouped.
    grouped bit NOT NULL CONSTRAINT queue_grouped DEFAULT 0,
    -- The last change of limits per group.
    changed_at datetime2(7) NOT NULL CONSTRAINT queue_changed_at DEFAULT '1900-01-01',
    paused bit NOT NULL CONSTRAINT queue_paused DEFAULT 0,
    CONSTRAINT queue_on_complete_known CHECK (on_complete IN ('delete', 'archive'))
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Policy of each type that was named in set_queue, set_group, pause or resume. The row with the empty type holds the defaults. A limit of 0: no limit.',
    N'SCHEMA', N'mq', N'TABLE', N'queue';

-- The row with the empty type holds the defaults.
INSERT INTO mq.queue (type) VALUES (N'');

-- Not unique: two groups may have one lane, and set_queue and set_group lock the row of mq.queue.
CREATE TABLE mq.queue_group (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL,
    weight int,
    max_active int,
    rate int,
    rate_seconds int,
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'What set_group has set for one group. NULL: as the queue. lane: of a fair queue, see mq_internal.place.',
    N'SCHEMA', N'mq', N'TABLE', N'queue_group';

CREATE CLUSTERED INDEX queue_group_lane ON mq.queue_group (type, lane);

-- run_at is the message's position in mq.ready or mq.delayed: it completes the only index of both. A failed message
-- gets a new run_at; sent_run_at keeps the original one, which is restored when the message is released, rescued or
-- redriven.
CREATE TABLE mq.message (
    id bigint IDENTITY (1, 1) NOT NULL CONSTRAINT message_pk PRIMARY KEY,
    run_at datetime2(7) NOT NULL,
    created_at datetime2(7) NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint,
    sent_run_at datetime2(7),
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    body nvarchar(max) NOT NULL,
    headers nvarchar(max),
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2,
    dedup_key nvarchar(400) COLLATE Latin1_General_100_BIN2,
    source nvarchar(400),
    cancelled_at datetime2(7)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Every live message, written once and deleted once. See the view mq.message_state. cancelled_at: when an active message was cancelled: it is deleted when its attempt ends in any way.',
    N'SCHEMA', N'mq', N'TABLE', N'message';

-- A separate table: in an index of mq.message every message would have an entry.
CREATE TABLE mq.dedup (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    dedup_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    id bigint NOT NULL CONSTRAINT dedup_pk PRIMARY KEY,
    CONSTRAINT dedup_key_once UNIQUE NONCLUSTERED (type, dedup_key)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The dedup_key of each live message that has one.',
    N'SCHEMA', N'mq', N'TABLE', N'dedup';

-- No second index: two transactions that lock rows through two indexes can deadlock.
CREATE TABLE mq.ready (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    priority smallint NOT NULL,
    lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT ready_lane DEFAULT N'-',
    run_at datetime2(7) NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    CONSTRAINT ready_pk PRIMARY KEY (type, priority, lane, run_at, id)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'State N, due. In a grouped queue a row is a ticket: its group may have a message to claim. lane: the group in a fair queue, else -; see mq_internal.place.',
    N'SCHEMA', N'mq', N'TABLE', N'ready';

CREATE TABLE mq.delayed (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_at datetime2(7) NOT NULL,
    id bigint NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    error nvarchar(max),
    CONSTRAINT delayed_pk PRIMARY KEY (type, run_at, id)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'State N: not due yet, or due and not promoted yet. error: the error of the last attempt.',
    N'SCHEMA', N'mq', N'TABLE', N'delayed';

CREATE TABLE mq.batch (
    batch_key uniqueidentifier NOT NULL CONSTRAINT batch_pk PRIMARY KEY,
    claimed_at datetime2(7) NOT NULL,
    lease_until datetime2(7) NOT NULL,
    lease_seconds int NOT NULL,
    counted bit NOT NULL CONSTRAINT batch_counted DEFAULT 0,
    in_groups bit NOT NULL CONSTRAINT batch_in_groups DEFAULT 0,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per claim. counted: mq.limited.active includes its messages. in_groups: its messages have rows in mq.group_lock with blocks = 0.',
    N'SCHEMA', N'mq', N'TABLE', N'batch';

CREATE INDEX batch_lease ON mq.batch (type, lease_until);

-- OUTPUT INTO inserts the rows, so the table must not have CHECK constraints, foreign keys or triggers.
CREATE TABLE mq.claimed (
    batch_key uniqueidentifier NOT NULL,
    id bigint NOT NULL,
    attempt smallint NOT NULL,
    priority smallint NOT NULL,
    run_at datetime2(7) NOT NULL,
    CONSTRAINT claimed_pk PRIMARY KEY (batch_key, id)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'State A: the messages that batches hold. priority and run_at give the order of the claim; mostly they are the place in mq.ready.',
    N'SCHEMA', N'mq', N'TABLE', N'claimed';

-- n: see docs/decisions/0029_counts.md.
CREATE TABLE mq.dead (
    id bigint NOT NULL CONSTRAINT dead_pk PRIMARY KEY,
    n bigint IDENTITY (1, 1) NOT NULL,
    died_at datetime2(7) NOT NULL,
    attempts smallint NOT NULL,
    error_group nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT dead_error_group DEFAULT N'',
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400),
    error nvarchar(max)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'State E: dead letters. The message stays in mq.message until it is redriven or purged. error_group: the error as list_errors returns it. n: the number of this death, without large gaps, to estimate how many there are.',
    N'SCHEMA', N'mq', N'TABLE', N'dead';

CREATE INDEX dead_age ON mq.dead (type, died_at, id);

CREATE INDEX dead_error ON mq.dead (type, error_group, died_at, id);

CREATE INDEX dead_n ON mq.dead (n);

-- A separate table, because most messages have none.
CREATE TABLE mq.result (
    id bigint NOT NULL CONSTRAINT result_pk PRIMARY KEY,
    result nvarchar(max) NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Results of messages that are not archived yet.',
    N'SCHEMA', N'mq', N'TABLE', N'result';

CREATE TABLE mq.step (
    id bigint NOT NULL,
    n bigint IDENTITY (1, 1) NOT NULL,
    saved_at datetime2(7) NOT NULL,
    step nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    step_value nvarchar(max),
    CONSTRAINT step_pk PRIMARY KEY (id, step)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Steps that handlers of messages have saved, until the message is finished: an archived message has them in a column. n: their order.',
    N'SCHEMA', N'mq', N'TABLE', N'step';

-- Old rows are deleted from one end.
CREATE TABLE mq.archive (
    id bigint NOT NULL,
    completed_at datetime2(7) NOT NULL,
    created_at datetime2(7) NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    body nvarchar(max) NOT NULL,
    headers nvarchar(max),
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2,
    dedup_key nvarchar(400) COLLATE Latin1_General_100_BIN2,
    source nvarchar(400),
    consumer nvarchar(400),
    result nvarchar(max),
    steps nvarchar(max),
    CONSTRAINT archive_pk PRIMARY KEY (completed_at, id)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'State C: completed messages of types whose policy is archive, in order of completion.',
    N'SCHEMA', N'mq', N'TABLE', N'archive';

CREATE INDEX archive_type ON mq.archive (type, completed_at, id);

-- For get_result.
CREATE INDEX archive_id ON mq.archive (id);

-- Marks are inserted, never updated: no session waits for one.
CREATE TABLE mq.mark (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    n bigint NOT NULL,
    priority smallint NOT NULL,
    run_at datetime2(7) NOT NULL,
    id bigint NOT NULL,
    scanned_at datetime2(7) NOT NULL,
    promoted_to datetime2(7) NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The low-water marks of a type: claims start there, after the deleted rows of finished messages. The rows with the highest n count, one per priority. The table may be emptied at any time.',
    N'SCHEMA', N'mq', N'TABLE', N'mark';

CREATE CLUSTERED INDEX mark_newest ON mq.mark (type, n DESC, priority, run_at, id);

-- When two claims run at once, the row furthest ahead counts, in whichever order they commit.
CREATE TABLE mq.ring (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    n bigint NOT NULL,
    after_id bigint NOT NULL CONSTRAINT ring_after_id DEFAULT 0,
    lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT ring_lane DEFAULT N'-',
    taken int NOT NULL CONSTRAINT ring_taken DEFAULT 0
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Where claims stopped: of a ring for each consumer, of a fair queue for each priority (its number is the consumer). Round n, after_id or lane: the last one; taken: messages of the turn of that lane. The row furthest ahead counts. The table may be emptied at any time.',
    N'SCHEMA', N'mq', N'TABLE', N'ring';

CREATE INDEX ring_newest ON mq.ring (type, consumer, n DESC, after_id DESC, lane DESC, taken DESC);

CREATE TABLE mq.grouped (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    id bigint NOT NULL CONSTRAINT grouped_pk PRIMARY KEY,
    attempts smallint NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Due messages of grouped queues, by group. An empty group_key: the message was sent without one.',
    N'SCHEMA', N'mq', N'TABLE', N'grouped';

CREATE UNIQUE INDEX grouped_order ON mq.grouped (type, group_key, id) INCLUDE (attempts);

CREATE TABLE mq.group_lock (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    id bigint NOT NULL CONSTRAINT group_lock_pk PRIMARY KEY,
    blocks bit NOT NULL CONSTRAINT group_lock_blocks DEFAULT 1
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Messages that take a place of their group. blocks = 1: the message blocks its group, because it is active or waits for a retry (ordered queues), waits for a token, or is a dead letter that stops the group (dead_stops_group). blocks = 0: an active message of another queue with limits per group; its place is taken until mq.group_freed has it too.',
    N'SCHEMA', N'mq', N'TABLE', N'group_lock';

CREATE INDEX group_lock_group ON mq.group_lock (type, group_key, blocks);

CREATE TABLE mq.limited (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT limited_pk PRIMARY KEY,
    active int NOT NULL CONSTRAINT limited_active DEFAULT 0,
    full_at datetime2(6) NOT NULL CONSTRAINT limited_full_at DEFAULT '1900-01-01',
    counted_at datetime2(7) NOT NULL CONSTRAINT limited_counted_at DEFAULT '1900-01-01'
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per type that has, or had, max_active or rate; a claim keeps it locked until it commits. active: the number of messages that batches hold, plus the places in mq.freed. full_at: when the token bucket is full again. counted_at: when uncounted batches were last searched; a future time: every claim searches them until then.',
    N'SCHEMA', N'mq', N'TABLE', N'limited';

-- An uncommitted row is locked, so its places still count as taken, with or without READ_COMMITTED_SNAPSHOT.
CREATE TABLE mq.freed (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    n bigint IDENTITY (1, 1) NOT NULL,
    places int NOT NULL,
    CONSTRAINT freed_pk PRIMARY KEY (type, n)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Freed places: a call that ends a claim inserts rows; the next claims delete them and subtract them from mq.limited.active.',
    N'SCHEMA', N'mq', N'TABLE', N'freed';

CREATE TABLE mq.group_freed (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    id bigint NOT NULL,
    -- Two names fit only into the key of a nonclustered index; a clustered key has at most 900 bytes.
    CONSTRAINT group_freed_pk PRIMARY KEY NONCLUSTERED (type, group_key, id)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Freed places of groups: rows of mq.group_lock whose messages are no longer active. Claims delete both rows.',
    N'SCHEMA', N'mq', N'TABLE', N'group_freed';

-- Only the session that holds the group's application lock reads and writes its row.
CREATE TABLE mq.bucket (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    full_at datetime2(6) NOT NULL,
    CONSTRAINT bucket_pk PRIMARY KEY NONCLUSTERED (type, group_key)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The token buckets of groups. full_at: when the bucket is full again. A group without a row has a full bucket.',
    N'SCHEMA', N'mq', N'TABLE', N'bucket';

CREATE INDEX bucket_full ON mq.bucket (type, full_at);

-- Lists of messages that one procedure passes to another.
CREATE TYPE mq.items AS TABLE (
    id bigint NOT NULL PRIMARY KEY,
    attempts smallint NOT NULL
);

-- Parts of a statement, by the names of their placeholders in a template: see mq_internal.fill.
CREATE TYPE mq.pieces AS TABLE (
    name varchar(20) NOT NULL PRIMARY KEY,
    piece nvarchar(max)
);

-- Positions in mq.ready, in claim order.
CREATE TYPE mq.places AS TABLE (
    priority smallint NOT NULL,
    lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_at datetime2(7) NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (priority, lane, run_at, id)
);

CREATE TYPE mq.failures AS TABLE (
    id bigint NOT NULL PRIMARY KEY,
    attempts smallint NOT NULL,
    retry int,
    error nvarchar(max)
);
