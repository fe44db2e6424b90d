-- Feeds: rows of the users' own tables, numbered in the order in which they are published. See docs/decisions/0009_sqlserver.md.

-- kind S: a counter of advance_sequence; F: that of a feed, whose publishers keep it locked. So it is no column of mq.feed, where
-- they would lock what everybody reads.
CREATE TABLE mq.counter (
    kind char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    value bigint NOT NULL,
    CONSTRAINT counter_pk PRIMARY KEY (kind, name)
);

-- The table by its name, so that one that is made anew is found; the columns quoted, as they stand in statements.
CREATE TABLE mq.feed (
    feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT feed_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_columns nvarchar(4000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sync_column nvarchar(300) COLLATE Latin1_General_100_BIN2 NOT NULL
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
