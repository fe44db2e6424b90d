-- The tables of feeds. A feed is a user's table whose rows get numbers when they are published. See
-- docs/decisions/0009_sqlserver.md.

CREATE TABLE mq.counter (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT counter_pk PRIMARY KEY,
    last_number bigint NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The counters of advance_sequence, with the last number of each.',
    N'SCHEMA', N'mq', N'TABLE', N'counter';

CREATE TABLE mq.feed (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT feed_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_columns nvarchar(4000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sync_column nvarchar(300) COLLATE Latin1_General_100_BIN2 NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per feed. The table is stored by name: a table that is dropped and created again is still found. Columns are stored quoted, as statements use them.',
    N'SCHEMA', N'mq', N'TABLE', N'feed';

-- Publishers keep its row locked; in mq.feed that lock would block the reads of all calls.
CREATE TABLE mq.feed_counter (
    feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT feed_counter_pk PRIMARY KEY,
    last_number bigint NOT NULL
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The last number of each feed.',
    N'SCHEMA', N'mq', N'TABLE', N'feed_counter';

CREATE TABLE mq.feed_consumer (
    feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    position bigint NOT NULL,
    moved_at datetime2(7) NOT NULL,
    -- Two names of full length fit only into the key of a nonclustered index; a clustered key has at most 900 bytes.
    CONSTRAINT feed_consumer_pk PRIMARY KEY NONCLUSTERED (feed, consumer)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'The position of each consumer: it has handled all rows up to that number.',
    N'SCHEMA', N'mq', N'TABLE', N'feed_consumer';
