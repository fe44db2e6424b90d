-- The tables of feeds: a table of a user's whose rows are numbered when they are published. See docs/decisions/0011_feeds.md.

CREATE TABLE mq.counter (
    name text COLLATE "C" PRIMARY KEY,
    last_number bigint NOT NULL
);

COMMENT ON TABLE mq.counter IS 'The counters of advance_sequence: the number given last.';

CREATE TABLE mq.feed (
    name text COLLATE "C" PRIMARY KEY,
    last_number bigint NOT NULL,
    created_at timestamptz NOT NULL,
    table_schema text COLLATE "C" NOT NULL,
    table_name text COLLATE "C" NOT NULL,
    sync_column text COLLATE "C" NOT NULL,
    key_columns text[] COLLATE "C" NOT NULL
);

COMMENT ON TABLE mq.feed IS 'Each feed, whose last_number is the counter of its own that publishers lock.';

-- Two feeds would take the numbers of one column for their own.
CREATE UNIQUE INDEX feed_column ON mq.feed (table_schema, table_name, sync_column);

CREATE TABLE mq.feed_consumer (
    feed text COLLATE "C" NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    moved_at timestamptz NOT NULL,
    PRIMARY KEY (feed, consumer)
);

COMMENT ON TABLE mq.feed_consumer IS 'How far each consumer of a feed is; one that has handled nothing yet has no row.';

-- One row each, changed by every batch: vacuum them early.
ALTER TABLE mq.counter SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE mq.feed SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE mq.feed_consumer SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
