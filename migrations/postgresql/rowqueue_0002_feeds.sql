-- The tables of feeds. A feed is a user's table whose rows get numbers when they are published. See
-- docs/decisions/0011_feeds.md.

CREATE TABLE mq.counter (
    name text COLLATE "C" PRIMARY KEY,
    last_number bigint NOT NULL
);

COMMENT ON TABLE mq.counter IS 'The counters of advance_sequence, with the last number of each.';

CREATE TABLE mq.feed (
    name text COLLATE "C" PRIMARY KEY,
    last_number bigint NOT NULL,
    created_at timestamptz NOT NULL,
    table_schema text COLLATE "C" NOT NULL,
    table_name text COLLATE "C" NOT NULL,
    sync_column text COLLATE "C" NOT NULL,
    key_columns text[] COLLATE "C" NOT NULL
);

COMMENT ON TABLE mq.feed IS 'One row per feed. last_number: the last number given; publishers lock the row.';

-- Two feeds must not share a sync column: each would use the numbers of the other.
CREATE UNIQUE INDEX feed_column ON mq.feed (table_schema, table_name, sync_column);

CREATE TABLE mq.feed_consumer (
    feed text COLLATE "C" NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    moved_at timestamptz NOT NULL,
    PRIMARY KEY (feed, consumer)
);

COMMENT ON TABLE mq.feed_consumer IS 'The position of each consumer of a feed. A consumer that has handled nothing yet has no row.';

-- Every batch changes one row of these tables: vacuum early.
ALTER TABLE mq.counter SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE mq.feed SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE mq.feed_consumer SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
