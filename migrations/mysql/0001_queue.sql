-- The tables of the queue on MySQL and MariaDB. A message is written once; its state is which narrow table holds its id:
-- ready and delayed (N), batch (A), dead (E), archive (C). See docs/decisions/0001_tables.md and 0007_mysql.md.
-- Only the procedures are a public interface: tables may change from one release to the next.
--
-- Names compare byte by byte, blanks at the end included; the collation that does so has another name on each product:
-- comments that begin with M! are read by MariaDB only, those that begin with !80017 by MySQL only.
-- DDL commits by itself: IF NOT EXISTS lets a second run finish what an interrupted one has begun.

CREATE TABLE IF NOT EXISTS mq_installed (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kind varchar(20) CHARACTER SET ascii NOT NULL,
    sha256 char(64) CHARACTER SET ascii NOT NULL,
    fingerprint char(64) CHARACTER SET ascii,
    applied_at datetime(6) NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB COMMENT = 'Which file of the package each object comes from: migrations and procedures, with their SHA-256.';

CREATE TABLE IF NOT EXISTS mq_queue (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    lease_seconds int NOT NULL DEFAULT 60,
    max_attempts int NOT NULL DEFAULT 10,
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
    grouped tinyint GENERATED ALWAYS AS (ordered OR group_max_active > 0 OR group_rate > 0) STORED,
    paused tinyint NOT NULL DEFAULT 0,
    PRIMARY KEY (type),
    CHECK (on_complete IN ('delete', 'archive'))
) ENGINE = InnoDB COMMENT = 'Policy of the types that set_queue, pause or resume have named; the type without a name holds the defaults.';

INSERT IGNORE INTO mq_queue (type) VALUES ('');

-- Claims of a type that has such a limit come one after the other: each holds this row until its commit.
CREATE TABLE IF NOT EXISTS mq_limited (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    full_at datetime(6) NOT NULL,
    PRIMARY KEY (type)
) ENGINE = InnoDB COMMENT = 'Types that have or had max_active or rate; full_at: when all tokens of the rate are there again.';

-- run_at is the message's place in mq_ready or mq_delayed: with it both are found by their primary key. A message that fails
-- moves; sent_run_at then keeps where it was sent to, and comes back to when it is released, rescued or redriven.
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
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Every live message, written once and deleted once; only run_at moves, when an attempt fails. See the view mq_message_state.';

-- A table of its own: in an index of mq_message every message would pay for it.
CREATE TABLE IF NOT EXISTS mq_dedup (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    dedup_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (type, dedup_key)
) ENGINE = InnoDB COMMENT = 'The dedup_key of each live message that has one.';

-- No second index: on InnoDB it costs as much again as the whole claim.
CREATE TABLE IF NOT EXISTS mq_ready (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    priority smallint NOT NULL,
    run_at datetime(6) NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    PRIMARY KEY (type, priority, run_at, id)
) ENGINE = InnoDB COMMENT = 'State N, due. In a queue whose messages stand in mq_grouped a row is a ticket: it says that its group has something to do.';

CREATE TABLE IF NOT EXISTS mq_delayed (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    run_at datetime(6) NOT NULL,
    id bigint NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (type, run_at, id)
) ENGINE = InnoDB COMMENT = 'State N, not due yet, or due and not promoted yet; error is that of the last attempt.';

CREATE TABLE IF NOT EXISTS mq_batch (
    batch_key varchar(36) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    claimed_at datetime(6) NOT NULL,
    lease_until datetime(6) NOT NULL,
    lease_seconds int NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    reader varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    items longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (batch_key),
    KEY batch_lease (type, lease_until)
) ENGINE = InnoDB COMMENT = 'State A: one row per claim. items are the messages it still holds: a JSON array of [id, number of the attempt, ...].';

CREATE TABLE IF NOT EXISTS mq_dead (
    id bigint NOT NULL,
    died_at datetime(6) NOT NULL,
    attempts smallint NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    reader varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id),
    KEY dead_age (type, died_at, id)
) ENGINE = InnoDB COMMENT = 'State E: dead letters. The message itself stays in mq_message until it is redriven or purged.';

CREATE TABLE IF NOT EXISTS mq_result (
    id bigint NOT NULL,
    result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB COMMENT = 'Results of messages that are not archived yet.';

-- A partition for each month of the year, all made here: completing never runs DDL, and ALTER TABLE ... TRUNCATE PARTITION
-- empties a month that is wholly old.
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
    reader varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id, month),
    KEY archive_type (type, completed_at, id),
    KEY archive_age (completed_at)
) ENGINE = InnoDB COMMENT = 'State C: completed messages of the types whose policy is archive, one partition per month of the year.'
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

-- Marks are inserted, never updated: no claim waits for the row, and the newest is the first index entry, however many
-- dead ones are after it.
CREATE TABLE IF NOT EXISTS mq_mark (
    id bigint NOT NULL AUTO_INCREMENT,
    n bigint NOT NULL,
    scanned_at datetime(6) NOT NULL,
    promoted_to datetime(6) NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    places text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id),
    KEY mark_newest (type, n)
) ENGINE = InnoDB COMMENT = 'The low-water marks of a type, a JSON array of [priority, run_at, id]: claims start after what is done. The row with the highest n counts.';

-- Of two claims of one reader the one that went further counts, whichever commits last.
CREATE TABLE IF NOT EXISTS mq_ring (
    id bigint NOT NULL AUTO_INCREMENT,
    n bigint NOT NULL,
    after_id bigint NOT NULL,
    low_until datetime(6),
    promoted_to datetime(6),
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    reader varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    PRIMARY KEY (id),
    KEY ring_newest (type, reader, n, after_id)
) ENGINE = InnoDB COMMENT = 'Where each reader of claim_wraparound stopped: round n, after_id; the furthest counts. A row without a reader is a low-water mark. A type that has a row here is a ring.';

CREATE TABLE IF NOT EXISTS mq_grouped (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    PRIMARY KEY (type, group_key, id)
) ENGINE = InnoDB COMMENT = 'Due messages of queues that are ordered or have limits by group; an empty group_key stands for messages sent without one.';

-- place is -1 where a group has one active message at most, 0 for a message that waits for a token of its group, else the message's id. So
-- two claims on different nodes of a cluster, whose row locks are not seen on the other, cannot both have the only place.
CREATE TABLE IF NOT EXISTS mq_group_lock (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    place bigint NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (type, group_key, place)
) ENGINE = InnoDB COMMENT = 'Messages (id) of a group that are being handled, and the one that a whole group waits for: its next attempt or token.';

CREATE TABLE IF NOT EXISTS mq_bucket (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    full_at datetime(6) NOT NULL,
    PRIMARY KEY (type, group_key),
    KEY bucket_full (type, full_at)
) ENGINE = InnoDB COMMENT = 'Groups that have spent tokens of group_rate, and when all of them are there again.';

-- Locks that no session waits for: a claim of a group locks the row CRC32(type and group_key) MOD 16384 if it is free.
-- A lock of a transaction, which GET_LOCK is not.
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

-- The account that the procedures run as: no login is possible; grants.sql gives it rights on these tables only.
-- MySQL may refuse an account without a password, and a random one would be shown: a hash that belongs to no password.
CREATE USER IF NOT EXISTS 'mq_owner'@'localhost' /*!80000 IDENTIFIED WITH caching_sha2_password
    AS '$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED' */ ACCOUNT LOCK;
