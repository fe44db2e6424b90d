-- Schedules: messages that are sent at the times of a cron expression. See docs/decisions/0015_schedules.md.

CREATE TABLE mq.schedule (
    name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT schedule_pk PRIMARY KEY,
    next_at datetime2(7),
    moved_at datetime2(7) NOT NULL,
    last_at datetime2(7),
    last_id bigint,
    priority smallint NOT NULL,
    overlap bit NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    cron nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    time_zone nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    body nvarchar(max) NOT NULL,
    headers nvarchar(max),
    group_key nvarchar(400) COLLATE Latin1_General_100_BIN2
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'One row per schedule. next_at: when its next message is due (NULL: never); moved_at: when next_at was set; last_id and last_at: the last message.',
    N'SCHEMA', N'mq', N'TABLE', N'schedule';

CREATE INDEX schedule_due ON mq.schedule (type, next_at) INCLUDE (moved_at);
