-- The tables of feeds. A feed is a user's table whose rows get numbers when they are published. See
-- docs/decisions/0011_feeds.md.

CREATE TABLE mq_counter (
    name mq_name NOT NULL,
    last_number bigint NOT NULL,
    CONSTRAINT mq_counter_pk PRIMARY KEY (name)
);

COMMENT ON TABLE mq_counter IS 'The counters of advance_sequence, with the last number of each.';

CREATE TABLE mq_feed (
    name mq_name NOT NULL,
    last_number bigint NOT NULL,
    created_at timestamp NOT NULL,
    table_name varchar(63) CHARACTER SET UTF8 NOT NULL,
    sync_column varchar(63) CHARACTER SET UTF8 NOT NULL,
    key_columns mq_text NOT NULL,
    CONSTRAINT mq_feed_pk PRIMARY KEY (name)
);

COMMENT ON TABLE mq_feed IS 'One row per feed. last_number: the last number given; publishers lock the row.';

-- Two feeds must not share a sync column: each would use the numbers of the other.
CREATE UNIQUE INDEX mq_feed_column ON mq_feed (table_name, sync_column);

CREATE TABLE mq_feed_consumer (
    feed mq_name NOT NULL,
    consumer mq_name NOT NULL,
    "POSITION" bigint NOT NULL,
    moved_at timestamp NOT NULL,
    CONSTRAINT mq_feed_consumer_pk PRIMARY KEY (feed, consumer)
);

COMMENT ON TABLE mq_feed_consumer IS 'The position of each consumer of a feed. A consumer that has handled nothing yet has no row.';
