-- Schedules: messages that are sent at the times of a cron expression. See docs/decisions/0015_schedules.md.

CREATE TABLE mq.schedule (
    name text COLLATE "C" PRIMARY KEY,
    next_at timestamptz,
    moved_at timestamptz NOT NULL,
    last_at timestamptz,
    last_id bigint,
    priority smallint NOT NULL,
    overlap boolean NOT NULL,
    type text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    time_zone text NOT NULL,
    body text NOT NULL,
    headers text,
    group_key text COLLATE "C"
);

COMMENT ON TABLE mq.schedule IS 'One row per schedule. next_at: when its next message is due; moved_at: when next_at was set; last_id and last_at: the last message.';

CREATE INDEX schedule_due ON mq.schedule (type, next_at);

-- Few rows, updated all the time: vacuum early.
ALTER TABLE mq.schedule SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
