-- The tables of the queue on Firebird. A message is written once. Its state depends on the narrow table that holds its id:
-- ready or delayed (N), batch or claimed (A), dead (E), archive (C). See docs/decisions/0001_tables.md and
-- 0008_firebird.md. Only the procedures are a public interface: tables may change in each release.
--
-- The database needs SQL dialect 3 and pages of at least 8,192 bytes, because the longest keys have two names.

CREATE DOMAIN mq_name AS varchar(200) CHARACTER SET UTF8;
CREATE DOMAIN mq_argument AS varchar(1000) CHARACTER SET UTF8;
CREATE DOMAIN mq_text AS blob SUB_TYPE TEXT CHARACTER SET UTF8;
CREATE DOMAIN mq_error AS varchar(4000) CHARACTER SET UTF8;
-- Bytes: texts are compared as if blanks followed, and a text with a control character would come before its beginning.
CREATE DOMAIN mq_lane AS varchar(820) CHARACTER SET OCTETS;
CREATE DOMAIN mq_key AS varchar(36) CHARACTER SET ASCII;

COMMENT ON DOMAIN mq_name IS 'A type, key or name.';
COMMENT ON DOMAIN mq_argument IS 'A name argument, before it is checked.';
COMMENT ON DOMAIN mq_lane IS 'The groups of a fair queue take turns: priority + 32768 in five digits, then the group key, in UTF-8.';
COMMENT ON DOMAIN mq_key IS 'A batch key: a UUID as text.';

CREATE TABLE mq_installed (
    name varchar(200) CHARACTER SET UTF8 NOT NULL,
    kind varchar(20) CHARACTER SET ASCII NOT NULL,
    sha256 varchar(64) CHARACTER SET ASCII NOT NULL,
    fingerprint varchar(64) CHARACTER SET ASCII,
    applied_at timestamp NOT NULL,
    CONSTRAINT mq_installed_pk PRIMARY KEY (name)
);

COMMENT ON TABLE mq_installed IS 'The installed files (migrations and procedures), one row per object, with their SHA-256.';

CREATE TABLE mq_queue (
    type mq_name NOT NULL,
    lease_seconds integer DEFAULT 60 NOT NULL,
    max_attempts integer DEFAULT 25 NOT NULL,
    backoff_seconds integer DEFAULT 5 NOT NULL,
    backoff_max_seconds integer DEFAULT 3600 NOT NULL,
    on_complete varchar(7) CHARACTER SET ASCII DEFAULT 'delete' NOT NULL,
    ordered smallint DEFAULT 0 NOT NULL,
    ring smallint DEFAULT 0 NOT NULL,
    fair smallint DEFAULT 0 NOT NULL,
    dead_stops_group smallint DEFAULT 0 NOT NULL,
    notify smallint DEFAULT 1 NOT NULL,
    max_active integer DEFAULT 0 NOT NULL,
    rate integer DEFAULT 0 NOT NULL,
    rate_seconds integer DEFAULT 1 NOT NULL,
    group_max_active integer DEFAULT 0 NOT NULL,
    group_rate integer DEFAULT 0 NOT NULL,
    group_rate_seconds integer DEFAULT 1 NOT NULL,
    grouped smallint DEFAULT 0 NOT NULL,
    paused smallint DEFAULT 0 NOT NULL,
    changed_at timestamp,
    CONSTRAINT mq_queue_pk PRIMARY KEY (type),
    CONSTRAINT mq_queue_on_complete CHECK (on_complete IN ('delete', 'archive'))
);

COMMENT ON TABLE mq_queue IS 'Policy of each type that was named in set_queue, pause or resume. The row with the empty type holds the defaults.';
COMMENT ON COLUMN mq_queue.ring IS '1: claims go round by id.';
COMMENT ON COLUMN mq_queue.fair IS '1: the groups of a priority take turns.';
COMMENT ON COLUMN mq_queue.dead_stops_group IS '1: a dead letter stops its ordered group.';
COMMENT ON COLUMN mq_queue.grouped IS '1: the queue is ordered or has limits per group, and its due messages are in mq_grouped.';
COMMENT ON COLUMN mq_queue.changed_at IS 'The last change of limits per group.';

CREATE TABLE mq_queue_group (
    type mq_name NOT NULL,
    group_key mq_name NOT NULL,
    weight integer,
    max_active integer,
    rate integer,
    rate_seconds integer,
    CONSTRAINT mq_queue_group_pk PRIMARY KEY (type, group_key)
);

COMMENT ON TABLE mq_queue_group IS 'The share and limits of single groups, as set_group sets them. NULL: as the queue.';

CREATE TABLE mq_limited (
    type mq_name NOT NULL,
    full_at bigint NOT NULL,
    CONSTRAINT mq_limited_pk PRIMARY KEY (type)
);

COMMENT ON TABLE mq_limited IS 'The token bucket of each type that has, or had, max_active or rate.';
COMMENT ON COLUMN mq_limited.full_at IS 'When the bucket is full again, in microseconds since 1970; a past time: it is full.';

CREATE SEQUENCE mq_message_id;

CREATE TABLE mq_message (
    id bigint NOT NULL,
    run_at timestamp NOT NULL,
    created_at timestamp NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint,
    type mq_name NOT NULL,
    body mq_text NOT NULL,
    headers mq_text,
    group_key mq_name,
    dedup_key mq_name,
    source mq_name,
    has_steps smallint,
    CONSTRAINT mq_message_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_message IS 'Every live message, written once and deleted once. See the view mq_message_state.';
COMMENT ON COLUMN mq_message.has_steps IS '1: mq_step or mq_cancelled may have rows of the message.';

-- A separate table: in an index of mq_message every message would have an entry.
CREATE TABLE mq_dedup (
    type mq_name NOT NULL,
    dedup_key mq_name NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT mq_dedup_pk PRIMARY KEY (type, dedup_key)
);

COMMENT ON TABLE mq_dedup IS 'The dedup_key of each live message that has one.';

CREATE TABLE mq_ready (
    type mq_name NOT NULL,
    priority smallint NOT NULL,
    run_at timestamp NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    lane mq_lane,
    CONSTRAINT mq_ready_pk PRIMARY KEY (type, priority, run_at, id)
);

COMMENT ON TABLE mq_ready IS 'State N, due. In a grouped queue a row is a ticket: its group may have a message to claim.';

COMMENT ON COLUMN mq_ready.lane IS 'In a fair queue the place where the group takes its turns; NULL in other queues.';

-- Fair queues read a type by lane, rings by id; cancel and fail find one message with it. The longest possible key.
CREATE INDEX mq_ready_lane ON mq_ready (type, lane, id);

CREATE TABLE mq_delayed (
    id bigint NOT NULL,
    type mq_name NOT NULL,
    run_at timestamp NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    error mq_error,
    CONSTRAINT mq_delayed_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_delayed IS 'State N: not due yet, or due and not promoted yet. error: the error of the last attempt.';

CREATE INDEX mq_delayed_due ON mq_delayed (type, run_at, id);

CREATE TABLE mq_batch (
    batch_key mq_key NOT NULL,
    claimed_at timestamp NOT NULL,
    lease_until timestamp NOT NULL,
    lease_seconds integer NOT NULL,
    type mq_name NOT NULL,
    consumer mq_name NOT NULL,
    id bigint,
    attempt smallint,
    CONSTRAINT mq_batch_pk PRIMARY KEY (batch_key)
);

COMMENT ON TABLE mq_batch IS 'State A: one row per claim. Its messages are in mq_claimed; only the message of get_message is in this row (id, attempt).';

CREATE INDEX mq_batch_lease ON mq_batch (type, lease_until);

-- Only the transaction that has locked the batch row changes these rows.
CREATE TABLE mq_claimed (
    batch_key mq_key NOT NULL,
    id bigint NOT NULL,
    n integer NOT NULL,
    attempt smallint NOT NULL,
    CONSTRAINT mq_claimed_pk PRIMARY KEY (batch_key, id)
);

COMMENT ON TABLE mq_claimed IS 'State A: the messages that a claim still holds. n: the order in the claim; attempt: the number of the attempt.';

CREATE SEQUENCE mq_dead_n;

CREATE TABLE mq_dead (
    id bigint NOT NULL,
    died_at timestamp NOT NULL,
    attempts smallint NOT NULL,
    type mq_name NOT NULL,
    consumer mq_name,
    error mq_error,
    error_group mq_name DEFAULT '' NOT NULL,
    error_hash bigint DEFAULT 0 NOT NULL,
    n bigint,
    CONSTRAINT mq_dead_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_dead IS 'State E: dead letters. The message stays in mq_message until it is redriven or purged.';
COMMENT ON COLUMN mq_dead.error_group IS 'The error as list_errors returns it.';
COMMENT ON COLUMN mq_dead.error_hash IS 'HASH of error_group, which is too long for an index. Different errors may have the same.';
COMMENT ON COLUMN mq_dead.n IS 'The number of this death, without large gaps: estimates count a sample of numbers.';

CREATE INDEX mq_dead_age ON mq_dead (type, died_at, id);
CREATE INDEX mq_dead_error ON mq_dead (type, error_hash, died_at);
CREATE INDEX mq_dead_number ON mq_dead (n);

CREATE TABLE mq_step (
    id bigint NOT NULL,
    n integer NOT NULL,
    saved_at timestamp NOT NULL,
    step mq_name NOT NULL,
    step_value mq_text,
    CONSTRAINT mq_step_pk PRIMARY KEY (id, step)
);

COMMENT ON TABLE mq_step IS 'Steps that handlers of messages have saved, until the message is finished: an archived message has them in a column. n: their order.';

-- Not a column of mq_message: a call that waits for the row of a message while a cancel of it is rolled back can lock the row
-- with values that are rolled back (4.0, 5.0). No primary key, for the same reason: an entry of it would be in the way.
CREATE TABLE mq_cancelled (
    id bigint NOT NULL,
    cancelled_at timestamp NOT NULL
);

COMMENT ON TABLE mq_cancelled IS 'When an active message was cancelled: it is deleted when its attempt ends in any way.';

CREATE INDEX mq_cancelled_id ON mq_cancelled (id);

CREATE TABLE mq_result (
    id bigint NOT NULL,
    result mq_text NOT NULL,
    CONSTRAINT mq_result_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_result IS 'Results of messages that are not archived yet.';

CREATE TABLE mq_archive (
    id bigint NOT NULL,
    completed_at timestamp NOT NULL,
    created_at timestamp NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    type mq_name NOT NULL,
    body mq_text NOT NULL,
    headers mq_text,
    group_key mq_name,
    dedup_key mq_name,
    source mq_name,
    consumer mq_name,
    result mq_text,
    steps mq_text,
    CONSTRAINT mq_archive_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_archive IS 'State C: completed messages of types whose policy is archive.';

CREATE INDEX mq_archive_type ON mq_archive (type, completed_at, id);

-- Marks are inserted, never updated: no claim meets a lock, and the newest is the first index entry, before all dead ones.
CREATE TABLE mq_mark (
    type mq_name NOT NULL,
    n bigint NOT NULL,
    priority smallint NOT NULL,
    run_at timestamp NOT NULL,
    id bigint NOT NULL,
    scanned_at timestamp NOT NULL,
    promoted_to timestamp NOT NULL
);

COMMENT ON TABLE mq_mark IS 'The low-water marks of a type: claims start there, after the dead record versions of finished messages. The rows with the highest n count, one per priority.';

CREATE DESCENDING INDEX mq_mark_newest ON mq_mark (type, n);

CREATE TABLE mq_ring (
    type mq_name NOT NULL,
    consumer mq_name NOT NULL,
    n bigint NOT NULL,
    after_id bigint NOT NULL,
    lane mq_lane
);

COMMENT ON TABLE mq_ring IS 'Where the next turn begins: after after_id for a consumer of a ring; in a fair queue after lane, and consumer is the priority (+ 32768). The row with the highest n counts.';

-- When two claims of one consumer run at once, the row furthest ahead counts, in whichever order they commit.
CREATE DESCENDING INDEX mq_ring_newest ON mq_ring (type, consumer, n, after_id);

CREATE TABLE mq_grouped (
    type mq_name NOT NULL,
    group_key mq_name NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    CONSTRAINT mq_grouped_pk PRIMARY KEY (type, group_key, id)
);

COMMENT ON TABLE mq_grouped IS 'Due messages of grouped queues, by group. An empty group_key: the message was sent without one.';

CREATE TABLE mq_group_lock (
    type mq_name NOT NULL,
    group_key mq_name NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT mq_group_lock_pk PRIMARY KEY (type, group_key, id)
);

COMMENT ON TABLE mq_group_lock IS 'The messages (id) that take a place of their group: active ones, a first message that waits in mq_delayed for a retry or a token, and dead letters that stop their group (dead_stops_group).';

-- Only the transaction that has locked the group's row of mq_stripe reads and writes its row here.
CREATE TABLE mq_bucket (
    type mq_name NOT NULL,
    group_key mq_name NOT NULL,
    full_at bigint NOT NULL,
    CONSTRAINT mq_bucket_pk PRIMARY KEY (type, group_key)
);

COMMENT ON TABLE mq_bucket IS 'The token buckets of groups. A group without a row has a full bucket. See mq_limited.';

CREATE INDEX mq_bucket_full ON mq_bucket (type, full_at);

CREATE TABLE mq_stripe (
    n integer NOT NULL,
    turn_of bigint,
    turn_until timestamp,
    CONSTRAINT mq_stripe_pk PRIMARY KEY (n)
);

COMMENT ON TABLE mq_stripe IS 'Rows to lock, chosen by a hash: 0 to 16383 for groups, from 20480 on to restart a call, from 24576 on for batches, from 40960 on for types with limits; the others for feeds, counters and adopted tables.';
COMMENT ON COLUMN mq_stripe.turn_of IS 'Firebird 5.0: the waiting connection that may lock the row next, until turn_until.';

INSERT INTO mq_queue (type) VALUES ('');

INSERT INTO mq_stripe (n)
WITH RECURSIVE number AS (
    SELECT 0 AS n FROM rdb$database
    UNION ALL
    SELECT n + 1 FROM number WHERE n < 351
)
SELECT a.n * 128 + b.n FROM number AS a CROSS JOIN number AS b WHERE b.n < 128;

-- Scratch tables of one call: only its transaction sees their rows, which disappear when it ends.
CREATE GLOBAL TEMPORARY TABLE mq_met (
    group_key mq_name NOT NULL,
    state varchar(1) CHARACTER SET ASCII NOT NULL,
    id bigint,
    priority smallint,
    run_at timestamp,
    taken integer,
    CONSTRAINT mq_met_pk PRIMARY KEY (group_key)
) ON COMMIT DELETE ROWS;

COMMENT ON TABLE mq_met IS 'Groups that a claim has met during its scan.';

CREATE GLOBAL TEMPORARY TABLE mq_taken (
    call bigint NOT NULL,
    n integer NOT NULL,
    id bigint NOT NULL,
    type mq_name,
    body mq_text,
    headers mq_text,
    priority smallint,
    group_key mq_name,
    dedup_key mq_name,
    attempt smallint NOT NULL,
    created_at timestamp,
    source mq_name,
    max_attempts integer,
    run_at timestamp,
    CONSTRAINT mq_taken_pk PRIMARY KEY (call, n, id)
) ON COMMIT DELETE ROWS;

COMMENT ON TABLE mq_taken IS 'Messages that take_batch has taken, until the caller has fetched them.';
