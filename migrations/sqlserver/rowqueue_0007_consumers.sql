-- Reports of consumers: which consumers run, and how many messages they handle per minute. See
-- docs/decisions/0018_reports.md. Keys of two names are NONCLUSTERED: a clustered key has at most 900 bytes.

CREATE TABLE mq.consumer (
    started_at datetime2(7) NOT NULL,
    reported_at datetime2(7) NOT NULL,
    due_at datetime2(7),
    counted_at datetime2(7) NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    busy_ms bigint NOT NULL,
    waited_ms bigint NOT NULL,
    handling nvarchar(4000),
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT consumer_pk PRIMARY KEY NONCLUSTERED (type, consumer)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per consumer and type, with totals since started_at. due_at: when its next report is overdue; NULL: it has stopped. counted_at: until when its dead letters are counted. handling: the messages that it handled then, a JSON object per line; NULL: none.',
    N'SCHEMA', N'mq', N'TABLE', N'consumer';

CREATE TABLE mq.report (
    minute datetime2(7) NOT NULL,
    sent bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    waited_ms bigint NOT NULL,
    busy_ms bigint NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT report_pk PRIMARY KEY NONCLUSTERED (minute, type, consumer)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Reports per minute, type and consumer: no two consumers write the same row. Rows are kept for a day.',
    N'SCHEMA', N'mq', N'TABLE', N'report';
