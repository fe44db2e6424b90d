-- Reports of consumers: which consumers run, and how many messages they handle per minute. See
-- docs/decisions/0018_reports.md.

CREATE TABLE mq.consumer (
    started_at timestamptz NOT NULL,
    reported_at timestamptz NOT NULL,
    due_at timestamptz,
    counted_at timestamptz NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    busy_ms bigint NOT NULL,
    waited_ms bigint NOT NULL,
    handling text,
    type text COLLATE "C" NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    PRIMARY KEY (type, consumer)
);

COMMENT ON TABLE mq.consumer IS 'One row per consumer and type, with totals since started_at. due_at: when its next report is overdue; NULL: it has stopped. counted_at: until when its dead letters are counted. handling: the messages that it handled then, a JSON object per line; NULL: none.';

CREATE TABLE mq.report (
    minute timestamptz NOT NULL,
    sent bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    waited_ms bigint NOT NULL,
    busy_ms bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    PRIMARY KEY (minute, type, consumer)
);

COMMENT ON TABLE mq.report IS 'Reports per minute, type and consumer: no two consumers write the same row. Rows are kept for a day.';

-- Few rows, updated all the time: vacuum early.
ALTER TABLE mq.consumer SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE mq.report SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
