-- send_occurrence: send a schedule's message and record it as the last one.
-- Arguments: p_schedule (its row, locked), p_run_at (when it was due)
CREATE OR REPLACE FUNCTION mq_internal.send_occurrence(p_schedule mq.schedule, p_run_at timestamptz, OUT id bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT m.id INTO id
    FROM mq.send_message(p_schedule.type, p_schedule.body, p_run_at, p_schedule.priority, p_schedule.group_key,
        p_headers => p_schedule.headers, p_source => 'schedule') AS m;
    UPDATE mq.schedule AS s SET last_at = p_run_at, last_id = send_occurrence.id WHERE s.name = p_schedule.name;
END
$$;
