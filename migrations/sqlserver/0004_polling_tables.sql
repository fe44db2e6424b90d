-- Polling tables: which consumer has claimed which rows of a user's table. That table itself is not changed.
-- See docs/decisions/0013_polling_tables.md and 0009_sqlserver.md.

-- Adopted tables; columns as quoted, as they stand in statements. Rows are never updated: everybody reads them. ident_columns: without
-- key_columns all columns that the table had when it was adopted; column_types: what all of these were then.
CREATE TABLE mq.polled (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT polled_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_columns nvarchar(4000) COLLATE Latin1_General_100_BIN2,
    order_column nvarchar(300) COLLATE Latin1_General_100_BIN2,
    status_column nvarchar(300) COLLATE Latin1_General_100_BIN2,
    ready_value nvarchar(max) COLLATE Latin1_General_100_BIN2,
    active_value nvarchar(max) COLLATE Latin1_General_100_BIN2,
    done_value nvarchar(max) COLLATE Latin1_General_100_BIN2,
    error_value nvarchar(max) COLLATE Latin1_General_100_BIN2,
    on_complete varchar(7) NOT NULL,
    late_seconds int,
    equal_rows bit NOT NULL,
    max_attempts int NOT NULL,
    ident_columns nvarchar(max) COLLATE Latin1_General_100_BIN2,
    column_types nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT polled_on_complete_known CHECK (on_complete IN ('keep', 'delete'))
);

-- How far claims have come, where the shape of the table has a position. Claims of one table take turns by locking this row, which
-- is why it is no part of mq.polled. swept_at: when claims last searched for rows at active_value that no entry stands for.
CREATE TABLE mq.polled_place (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT polled_place_pk PRIMARY KEY,
    place nvarchar(max) COLLATE Latin1_General_100_BIN2,
    place_hash varbinary(32),
    copies bigint,
    scanned_at datetime2(7),
    swept_at datetime2(7)
);

-- One row per claim. The transaction that deletes it owns what it held.
CREATE TABLE mq.polled_batch (
    batch_key uniqueidentifier NOT NULL CONSTRAINT polled_batch_pk PRIMARY KEY,
    lease_until datetime2(7) NOT NULL,
    lease_seconds int NOT NULL,
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    reader nvarchar(400) NOT NULL
);

CREATE INDEX polled_batch_lease ON mq.polled_batch (name, lease_until);

-- Rows that are claimed (A), wait for another attempt (N) or are dead (E). active: their status stands at active_value. ident is a
-- JSON object of texts that the columns read back exactly. todo, hit, refused and retry are the notes of one call for
-- write_rows: nothing else reads them.
CREATE TABLE mq.polled_row (
    id bigint IDENTITY (1, 1) NOT NULL CONSTRAINT polled_row_pk PRIMARY KEY,
    batch_key uniqueidentifier,
    run_at datetime2(7) NOT NULL,
    attempts int NOT NULL,
    state char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
    active bit NOT NULL,
    todo char(1) COLLATE Latin1_General_100_BIN2,
    hit tinyint NOT NULL,
    refused bit NOT NULL,
    retry int,
    copies bigint NOT NULL,
    ident_hash varbinary(32) NOT NULL,
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_json nvarchar(max) NOT NULL,
    row_json nvarchar(max),
    place nvarchar(max) COLLATE Latin1_General_100_BIN2,
    reader nvarchar(400),
    error nvarchar(max)
);

-- state and active, so that a search for a row's entry does not wait for transactions that are changing it.
CREATE INDEX polled_row_ident ON mq.polled_row (name, ident_hash) INCLUDE (state, active);

CREATE INDEX polled_row_batch ON mq.polled_row (batch_key, id);

-- active, to count how many rows stand at active_value.
CREATE INDEX polled_row_due ON mq.polled_row (name, state, run_at, id) INCLUDE (active);

-- Without a status and with keep: the highest order value that was in the table at some moment.
CREATE TABLE mq.polled_mark (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    seen_at datetime2(7) NOT NULL,
    place nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT polled_mark_pk PRIMARY KEY (name, seen_at)
);
