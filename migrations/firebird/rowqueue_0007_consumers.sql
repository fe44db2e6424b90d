-- Reports of consumers: which consumers run, and how many messages they handle per minute. See
-- docs/decisions/0018_reports.md.

CREATE TABLE mq_consumer (
    started_at timestamp NOT NULL,
    reported_at timestamp NOT NULL,
    due_at timestamp,
    counted_at timestamp NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    busy_ms bigint NOT NULL,
    waited_ms bigint NOT NULL,
    handling varchar(4000) CHARACTER SET UTF8,
    type mq_name NOT NULL,
    consumer mq_name NOT NULL,
    CONSTRAINT mq_consumer_pk PRIMARY KEY (type, consumer)
);

COMMENT ON TABLE mq_consumer IS 'One row per consumer and type, with totals since started_at. due_at: when its next report is overdue; NULL: it has stopped. counted_at: until when its dead letters are counted. handling: the messages that it handled then, a JSON object per line; NULL: none.';

CREATE TABLE mq_report (
    "MINUTE" timestamp NOT NULL,
    sent bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    waited_ms bigint NOT NULL,
    busy_ms bigint NOT NULL,
    type mq_name NOT NULL,
    consumer mq_name NOT NULL,
    CONSTRAINT mq_report_pk PRIMARY KEY ("MINUTE", type, consumer)
);

COMMENT ON TABLE mq_report IS 'Reports per minute, type and consumer: no two consumers write the same row. Rows are kept for a day.';
