-- Polling tables: which rows of a user's table are claimed. The structure of that table is not changed. See
-- docs/decisions/0013_polling_tables.md and 0009_sqlserver.md.

-- Rows are never updated, because all calls read them.
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

EXEC sys.sp_addextendedproperty N'MS_Description', N'Adopted tables. Column names are stored quoted, as statements use them. ident_columns: without key_columns, all columns of the table when it was adopted; column_types: their types then.',
    N'SCHEMA', N'mq', N'TABLE', N'polled';

-- A claim locks the row, so claims of one table run one after the other; the row is not part of mq.polled because of
-- this lock.
CREATE TABLE mq.polled_place (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT polled_place_pk PRIMARY KEY,
    place nvarchar(max) COLLATE Latin1_General_100_BIN2,
    place_hash varbinary(32),
    copies bigint,
    scanned_at datetime2(7),
    swept_at datetime2(7)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The position of the claims of an adopted table, if its shape has one. swept_at: when a claim last searched for rows at active_value without a row in mq.polled_row.',
    N'SCHEMA', N'mq', N'TABLE', N'polled_place';

CREATE TABLE mq.polled_batch (
    batch_key uniqueidentifier NOT NULL CONSTRAINT polled_batch_pk PRIMARY KEY,
    lease_until datetime2(7) NOT NULL,
    lease_seconds int NOT NULL,
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per claim of rows. The transaction that deletes it owns the rows that the claim held.',
    N'SCHEMA', N'mq', N'TABLE', N'polled_batch';

CREATE INDEX polled_batch_lease ON mq.polled_batch (name, lease_until);

-- todo, hit, refused and retry are work columns of write_rows within one call.
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
    consumer nvarchar(400),
    error nvarchar(max)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Rows of adopted tables that are claimed (A), wait for a retry (N) or are dead (E). active: their status is active_value. ident: a JSON object of texts that convert back to exactly the values of the columns.',
    N'SCHEMA', N'mq', N'TABLE', N'polled_row';

-- Includes state and active: a search for a row does not wait for transactions that are changing it.
CREATE INDEX polled_row_ident ON mq.polled_row (name, ident_hash) INCLUDE (state, active);

CREATE INDEX polled_row_batch ON mq.polled_row (batch_key, id);

-- Includes active, to count the rows that claims have set to active_value.
CREATE INDEX polled_row_due ON mq.polled_row (name, state, run_at, id) INCLUDE (active);

CREATE TABLE mq.polled_mark (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    seen_at datetime2(7) NOT NULL,
    place nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT polled_mark_pk PRIMARY KEY (name, seen_at)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'For tables without a status column and with on_complete keep: the highest order value at the time seen_at.',
    N'SCHEMA', N'mq', N'TABLE', N'polled_mark';
