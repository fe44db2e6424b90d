-- Feeds: rows of the users' own tables, numbered in the order in which they are published. See docs/decisions/0009_sqlserver.md.

-- The counters of advance_sequence: the number given last.
CREATE TABLE mq.counter (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT counter_pk PRIMARY KEY,
    last_number bigint NOT NULL
);

-- The table by its name, so that one that is created again is found; the columns quoted, as they stand in statements.
CREATE TABLE mq.feed (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT feed_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_columns nvarchar(4000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sync_column nvarchar(300) COLLATE Latin1_General_100_BIN2 NOT NULL
);

-- The counter of each feed, which its publishers keep locked: a column of mq.feed would lock what all calls read.
CREATE TABLE mq.feed_counter (
    feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT feed_counter_pk PRIMARY KEY,
    last_number bigint NOT NULL
);

-- Where each consumer stands: all rows up to that number are handled.
CREATE TABLE mq.feed_consumer (
    feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    position bigint NOT NULL,
    moved_at datetime2(7) NOT NULL,
    -- As the key of a nonclustered index two names of full length fit; a clustered one takes 900 bytes.
    CONSTRAINT feed_consumer_pk PRIMARY KEY NONCLUSTERED (feed, consumer)
);
