-- send_lines: send the messages of a call of send_batch that has options.
-- Arguments: p_by_id (see send_batch), p_lines (the bodies, one per line, unless p_bodies holds them)
-- Returns: the number of messages, at most 10,001
CREATE OR REPLACE FUNCTION mq_internal.send_lines(
    p_queue mq.queue, p_by_id boolean, p_now timestamptz, p_lines text, p_bodies text[], p_options text
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_set record;
    v_run_at timestamptz;
    v_priority smallint;
    v_sent bigint;
BEGIN
    SELECT * INTO v_set FROM jsonb_to_record(mq_internal.send_options(p_options, true)) AS o (
        run_at timestamptz, priority bigint, group_key text, max_attempts bigint, headers text, source text, delay_seconds bigint
    );
    PERFORM mq_internal.require_message('', v_set.run_at, v_set.priority, v_set.group_key, NULL, v_set.max_attempts,
        v_set.headers, v_set.source, v_set.delay_seconds, NULL);
    v_run_at := coalesce(v_set.run_at, p_now + make_interval(secs => v_set.delay_seconds), p_now);
    v_priority := coalesce(v_set.priority, 0);
    WITH sent AS (
        INSERT INTO mq.message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, source)
        SELECT v_run_at, p_now, v_priority, v_set.max_attempts, p_queue.type, b.body, v_set.headers, v_set.group_key,
            mq_internal.consumer_name(v_set.source)
        FROM (
            SELECT unnest(p_bodies)
            UNION ALL
            SELECT line FROM string_to_table(CASE WHEN p_bodies IS NULL THEN p_lines END, E'\n') AS line WHERE line <> ''
        ) AS b (body)
        LIMIT 10001
        RETURNING id
    ), later AS (
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type)
        SELECT id, v_run_at, v_priority, 0, p_queue.type FROM sent WHERE v_run_at > p_now
    ), grouped AS (
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        SELECT id, 0, p_queue.type, coalesce(v_set.group_key, '') FROM sent WHERE p_queue.grouped AND v_run_at <= p_now
    ), ready AS (
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        SELECT v_run_at, id, v_priority, 0, p_queue.type, p_by_id,
            mq_internal.lane(p_queue.fair OR p_queue.grouped, v_priority, v_set.group_key)
        FROM sent WHERE v_run_at <= p_now
    )
    SELECT count(*) INTO v_sent FROM sent;
    IF v_run_at < p_now THEN
        PERFORM mq_internal.lower_mark(p_queue.type);
    END IF;
    RETURN v_sent;
END
$$;
