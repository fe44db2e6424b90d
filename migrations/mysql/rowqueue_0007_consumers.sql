-- Reports of consumers: which consumers run, and how many messages they handle per minute. See
-- docs/decisions/0018_reports.md.

CREATE TABLE IF NOT EXISTS mq_consumer (
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    started_at datetime(6) NOT NULL,
    reported_at datetime(6) NOT NULL,
    due_at datetime(6),
    counted_at datetime(6) NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    busy_ms bigint NOT NULL,
    waited_ms bigint NOT NULL,
    handling varchar(4000) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    PRIMARY KEY (type, consumer)
) ENGINE = InnoDB COMMENT = 'One row per consumer and type, with totals since started_at. due_at: when its next report is overdue; NULL: it has stopped. counted_at: until when its dead letters are counted. handling: the messages that it handled then, a JSON object per line; NULL: none.';

CREATE TABLE IF NOT EXISTS mq_report (
    minute datetime(6) NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    sent bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    waited_ms bigint NOT NULL,
    busy_ms bigint NOT NULL,
    PRIMARY KEY (minute, type, consumer)
) ENGINE = InnoDB COMMENT = 'Reports per minute, type and consumer: no two consumers write the same row. Rows are kept for a day.';
