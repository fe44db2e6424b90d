-- The tables of feeds. A feed is a user's table whose rows get numbers when they are published. See
-- docs/decisions/0011_feeds.md.

CREATE TABLE IF NOT EXISTS mq_counter (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    last_number bigint NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB COMMENT = 'The counters of advance_sequence, with the last number of each.';

-- The second key: two feeds must not share a sync column, because each would use the numbers of the other.
CREATE TABLE IF NOT EXISTS mq_feed (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    last_number bigint NOT NULL,
    created_at datetime(6) NOT NULL,
    table_schema varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    sync_column varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_columns text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_by varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (name),
    UNIQUE KEY feed_column (table_schema, table_name, sync_column)
) ENGINE = InnoDB COMMENT = 'One row per feed. last_number: the last number given; publishers lock the row. An empty table_schema: the table is in this database.';

CREATE TABLE IF NOT EXISTS mq_feed_consumer (
    feed varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    position bigint NOT NULL,
    moved_at datetime(6) NOT NULL,
    PRIMARY KEY (feed, consumer)
) ENGINE = InnoDB COMMENT = 'The position of each consumer of a feed. A consumer that has handled nothing yet has no row.';
