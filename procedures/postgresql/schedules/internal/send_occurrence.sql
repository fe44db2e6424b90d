-- send_occurrence: send a schedule's message and note it as the last one.
-- Arguments:   p_schedule (its row, locked), p_run_at (when it was due)
-- Returns:     id
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.send_occurrence(s, now()) FROM mq.schedule AS s WHERE name = 'nightly';

CREATE OR REPLACE FUNCTION mq.send_occurrence(
    p_schedule mq.schedule,
    p_run_at timestamptz,
    OUT id bigint
)
LANGUAGE plpgsql
AS $$
BEGIN
    id := (mq.send_one(p_schedule.type, p_schedule.body, p_run_at, p_schedule.priority, p_schedule.group_key, NULL, NULL,
        p_schedule.headers, 'schedule', NULL, NULL)).id;
    UPDATE mq.schedule AS s SET last_at = p_run_at, last_id = send_occurrence.id WHERE s.name = p_schedule.name;
END
$$;
