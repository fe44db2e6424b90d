-- The tables of the queue on MySQL and MariaDB. A message is written once. Its state depends on the narrow table that holds
-- its id: ready or delayed (N), batch (A), dead (E), archive (C). See docs/decisions/0001_tables.md and 0007_mysql.md. Only
-- the procedures are a public interface: tables may change in each release.
--
-- Names compare byte by byte, including trailing blanks. The collation for that has a different name on each product: only
-- MariaDB reads comments that begin with M!, and only MySQL those that begin with !80017. Each DDL statement commits: IF
-- NOT EXISTS makes an interrupted run safe to rerun.

CREATE TABLE IF NOT EXISTS mq_installed (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kind varchar(20) CHARACTER SET ascii NOT NULL,
    sha256 char(64) CHARACTER SET ascii NOT NULL,
    fingerprint char(64) CHARACTER SET ascii,
    applied_at datetime(6) NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB COMMENT = 'The installed files (migrations and procedures), one row per object, with their SHA-256.';

CREATE TABLE IF NOT EXISTS mq_queue (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    lease_seconds int NOT NULL DEFAULT 60,
    max_attempts int NOT NULL DEFAULT 25,
    backoff_seconds int NOT NULL DEFAULT 5,
    backoff_max_seconds int NOT NULL DEFAULT 3600,
    on_complete varchar(7) CHARACTER SET ascii NOT NULL DEFAULT 'delete',
    ordered tinyint NOT NULL DEFAULT 0,
    notify tinyint NOT NULL DEFAULT 1,
    max_active int NOT NULL DEFAULT 0,
    rate int NOT NULL DEFAULT 0,
    rate_seconds int NOT NULL DEFAULT 1,
    group_max_active int NOT NULL DEFAULT 0,
    group_rate int NOT NULL DEFAULT 0,
    group_rate_seconds int NOT NULL DEFAULT 1,
    ring tinyint NOT NULL DEFAULT 0,
    fair tinyint NOT NULL DEFAULT 0,
    dead_stops_group tinyint NOT NULL DEFAULT 0,
    converted tinyint NOT NULL DEFAULT 0,
    group_weight int NOT NULL DEFAULT 1,
    group_limits tinyint NOT NULL DEFAULT 0,
    grouped tinyint GENERATED ALWAYS AS (ordered OR group_max_active > 0 OR group_rate > 0 OR group_limits) STORED,
    paused tinyint NOT NULL DEFAULT 0,
    PRIMARY KEY (type),
    CHECK (on_complete IN ('delete', 'archive'))
) ENGINE = InnoDB COMMENT = 'Policy of each type that was named in set_queue, pause or resume. The row with the empty type holds the defaults.';

INSERT IGNORE INTO mq_queue (type) VALUES ('');

-- group_weight and group_limits in mq_queue say what is here: the highest weight, and whether a group has a limit.
CREATE TABLE IF NOT EXISTS mq_queue_group (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    weight int,
    max_active int,
    rate int,
    rate_seconds int,
    PRIMARY KEY (type, group_key),
    KEY queue_group_weight (type, weight)
) ENGINE = InnoDB COMMENT = 'Groups with a share or limits of their own: see set_group. NULL: as the queue.';

-- Claims of a type with such a limit run one after the other: each keeps this row locked until it commits.
CREATE TABLE IF NOT EXISTS mq_limited (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    full_at datetime(6) NOT NULL,
    PRIMARY KEY (type)
) ENGINE = InnoDB COMMENT = 'Types that have, or had, max_active or rate. full_at: when the token bucket is full again.';

-- run_at is the message's position in mq_ready or mq_delayed: it completes the primary key of both. A failed message gets a
-- new run_at; sent_run_at keeps the original one, which is restored when the message is released, rescued or redriven.
CREATE TABLE IF NOT EXISTS mq_message (
    id bigint NOT NULL AUTO_INCREMENT,
    run_at datetime(6) NOT NULL,
    created_at datetime(6) NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint,
    sent_run_at datetime(6),
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    body longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    headers mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    dedup_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    source varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    cancelled_at datetime(6),
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Every live message, written once and deleted once; only run_at changes, when an attempt fails. cancelled_at: when it was cancelled while active; it is deleted when its attempt ends in any way. See the view mq_message_state.';

-- A separate table: in an index of mq_message every message would have an entry.
CREATE TABLE IF NOT EXISTS mq_dedup (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    dedup_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (type, dedup_key)
) ENGINE = InnoDB COMMENT = 'The dedup_key of each live message that has one.';

-- lane: the group_key of a message in a fair queue, else empty. In a queue that is claimed round-robin, all rows have one
-- priority and one run_at, so the key has the order of the ids. No second index: on InnoDB it would double the cost of a
-- claim.
CREATE TABLE IF NOT EXISTS mq_ready (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    priority smallint NOT NULL,
    lane varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL DEFAULT '',
    run_at datetime(6) NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    PRIMARY KEY (type, priority, lane, run_at, id)
) ENGINE = InnoDB COMMENT = 'State N, due. In a queue whose messages are in mq_grouped, a row is a ticket: its group may have a message to claim.';

CREATE TABLE IF NOT EXISTS mq_delayed (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    run_at datetime(6) NOT NULL,
    id bigint NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (type, run_at, id)
) ENGINE = InnoDB COMMENT = 'State N: not due yet, or due and not promoted yet. error: the error of the last attempt.';

CREATE TABLE IF NOT EXISTS mq_batch (
    batch_key varchar(36) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    claimed_at datetime(6) NOT NULL,
    lease_until datetime(6) NOT NULL,
    lease_seconds int NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    items longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (batch_key),
    KEY batch_lease (type, lease_until)
) ENGINE = InnoDB COMMENT = 'State A: one row per claim. items: the messages that it still holds, a JSON array of [id, number of the attempt, ...].';

-- error_group: the first line, with # for each run of digits, without trailing blanks. A generated column, because some
-- servers refuse stored functions. n: to estimate how many there are. See docs/decisions/0029_counts.md.
CREATE TABLE IF NOT EXISTS mq_dead (
    id bigint NOT NULL,
    died_at datetime(6) NOT NULL,
    attempts smallint NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error_group varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
        GENERATED ALWAYS AS (TRIM(TRAILING ' ' FROM LEFT(REGEXP_REPLACE(SUBSTRING_INDEX(SUBSTRING_INDEX(
            LEFT(COALESCE(error, ''), 500), CHAR(10 USING utf8mb4), 1), CHAR(13 USING utf8mb4), 1),
            '[0-9#]+', '#'), 200))) STORED,
    n bigint NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (id),
    KEY dead_age (type, died_at, id),
    KEY dead_error (type, error_group, died_at, id),
    KEY dead_n (n)
) ENGINE = InnoDB COMMENT = 'State E: dead letters. The message stays in mq_message until it is redriven or purged.';

CREATE TABLE IF NOT EXISTS mq_step (
    id bigint NOT NULL,
    n int NOT NULL,
    saved_at datetime(6) NOT NULL,
    step varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    step_value longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id, step)
) ENGINE = InnoDB COMMENT = 'Steps that handlers of messages have saved, until the message is finished: an archived message has them in a column. n: their order.';

CREATE TABLE IF NOT EXISTS mq_result (
    id bigint NOT NULL,
    result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Results of messages that are not archived yet.';

-- One partition per month of the year, all created here: completing messages never runs DDL, and ALTER TABLE ... TRUNCATE
-- PARTITION empties a month if all its rows are old enough.
CREATE TABLE IF NOT EXISTS mq_archive (
    id bigint NOT NULL,
    completed_at datetime(6) NOT NULL,
    created_at datetime(6) NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    month tinyint NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    body longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    headers mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    dedup_key varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    source varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    steps longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id, month),
    KEY archive_type (type, completed_at, id)
) ENGINE = InnoDB COMMENT = 'State C: completed messages of types whose policy is archive, one partition per month of the year.'
PARTITION BY LIST (month) (
    PARTITION archive_01 VALUES IN (1),
    PARTITION archive_02 VALUES IN (2),
    PARTITION archive_03 VALUES IN (3),
    PARTITION archive_04 VALUES IN (4),
    PARTITION archive_05 VALUES IN (5),
    PARTITION archive_06 VALUES IN (6),
    PARTITION archive_07 VALUES IN (7),
    PARTITION archive_08 VALUES IN (8),
    PARTITION archive_09 VALUES IN (9),
    PARTITION archive_10 VALUES IN (10),
    PARTITION archive_11 VALUES IN (11),
    PARTITION archive_12 VALUES IN (12)
);

-- Marks are inserted, never updated: no claim waits for a row, and the newest is the first index entry, before all dead
-- ones.
CREATE TABLE IF NOT EXISTS mq_mark (
    id bigint NOT NULL AUTO_INCREMENT,
    n bigint NOT NULL,
    scanned_at datetime(6) NOT NULL,
    promoted_to datetime(6) NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    places text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id),
    KEY mark_newest (type, n)
) ENGINE = InnoDB COMMENT = 'The low-water marks of a type, a JSON array of [priority, run_at, id]: claims start there, after the deleted rows of finished messages. The row with the highest n counts.';

-- When two claims run at once, the row furthest ahead counts, in whichever order they commit.
CREATE TABLE IF NOT EXISTS mq_ring (
    id bigint NOT NULL AUTO_INCREMENT,
    n bigint NOT NULL,
    after_id bigint NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    lane varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    KEY ring_newest (type, consumer, n, after_id)
) ENGINE = InnoDB COMMENT = 'Positions of claims; the row furthest ahead counts. Of each consumer of a ring: round n, after_id. Of a fair queue: a priority as consumer, the lane, and n, the number of lanes passed.';

CREATE TABLE IF NOT EXISTS mq_grouped (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    PRIMARY KEY (type, group_key, id)
) ENGINE = InnoDB COMMENT = 'Due messages of ordered queues and of queues with limits per group. An empty group_key: the message was sent without one.';

-- place is -1 in a queue with one active message per group, 0 for a message that waits for a token of its group, otherwise
-- the message's id. In a cluster, row locks are not visible on other nodes; with this key two claims on different nodes
-- cannot both take the only place.
CREATE TABLE IF NOT EXISTS mq_group_lock (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    place bigint NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (type, group_key, place)
) ENGINE = InnoDB COMMENT = 'The active messages (id) of a group, its first message if that blocks the group (it waits for a retry or a token), and its dead letters if they stop the group (dead_stops_group). place: in an ordered queue -1, also of a message that died there; 0 for one that waits for a token; otherwise the id.';

CREATE TABLE IF NOT EXISTS mq_bucket (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    full_at datetime(6) NOT NULL,
    PRIMARY KEY (type, group_key),
    KEY bucket_full (type, full_at)
) ENGINE = InnoDB COMMENT = 'The token buckets of groups. full_at: when the bucket is full again. A group without a row has a full bucket.';

-- Read on MariaDB inside a caller's transaction: reading the server's own grant tables would make savepoints impossible
-- there.
CREATE TABLE IF NOT EXISTS mq_allowed (
    account varchar(400) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    table_schema varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    rights tinyint NOT NULL,
    seen_at datetime(6) NOT NULL,
    PRIMARY KEY (account, table_schema, table_name)
) ENGINE = InnoDB COMMENT = 'Rights of logins on users'' tables, cached for an hour.';

-- Rows to lock, for which no session waits: a claim of a group locks the row CRC32(type and group_key) MOD 16384 if it is
-- free. Unlike GET_LOCK, a row lock ends with its transaction.
CREATE TABLE IF NOT EXISTS mq_stripe (
    n smallint NOT NULL,
    PRIMARY KEY (n)
) ENGINE = InnoDB COMMENT = 'Numbers 0 to 16383: row locks for groups.';

INSERT IGNORE INTO mq_stripe (n)
SELECT a.n + 8 * b.n + 64 * c.n + 512 * d.n + 4096 * e.n
FROM (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7) AS a,
    (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7) AS b,
    (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7) AS c,
    (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7) AS d,
    (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) AS e;

-- The account that owns the procedures. It cannot log in, and grants.sql gives it rights on these tables only. MySQL may
-- refuse an account without a password and would print a random one, so this is a hash that matches no password.
CREATE USER IF NOT EXISTS 'mq_owner'@'localhost' /*!80000 IDENTIFIED WITH caching_sha2_password
    AS '$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED' */ ACCOUNT LOCK;
