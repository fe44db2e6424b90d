-- Schedules: messages that are sent at the times of a cron expression. See docs/decisions/0015_schedules.md.

CREATE TABLE mq_schedule (
    name mq_name NOT NULL,
    next_at timestamp,
    moved_at timestamp NOT NULL,
    last_at timestamp,
    last_id bigint,
    priority smallint NOT NULL,
    overlap smallint NOT NULL,
    type mq_name NOT NULL,
    cron mq_name NOT NULL,
    time_zone mq_name NOT NULL,
    body mq_text NOT NULL,
    headers mq_text,
    group_key mq_name,
    CONSTRAINT mq_schedule_pk PRIMARY KEY (name)
);

COMMENT ON TABLE mq_schedule IS 'One row per schedule. next_at: when its next message is due; moved_at: when next_at was set; last_id and last_at: the last message.';

CREATE INDEX mq_schedule_due ON mq_schedule (type, next_at);
