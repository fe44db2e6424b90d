-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   p_type (1 to 200 characters), p_bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string), p_options (a flat
--              JSON object, for all messages; limits as in send_with): run_at, delay_seconds, priority, group_key,
--              max_attempts, headers, source
-- Returns:     count: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     SELECT mq.send_batch('email', E'{"to":"ada@example.org"}\n{"to":"alan@example.org"}', '{"priority": 5}');
CREATE OR REPLACE FUNCTION mq.send_batch(
    p_type text,
    p_bodies text,
    p_options text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    -- Assign the transaction ID before the settings are read: see convert_rows.
    v_me xid8 := pg_current_xact_id();
    v_queue mq.queue;
    v_by_id boolean;
    v_bodies text[];
    v_bad bigint;
    v_set record := mq_internal.send_options(p_options, true);
    v_run_at timestamptz := coalesce(v_set.run_at, v_now + make_interval(secs => v_set.delay_seconds), v_now);
    v_priority smallint;
    v_source text;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_options IS NOT NULL THEN
        PERFORM mq_internal.require_message('', v_set.run_at, v_set.priority, v_set.group_key, NULL, v_set.max_attempts,
            v_set.headers, v_set.source, v_set.delay_seconds, NULL);
    END IF;
    v_priority := coalesce(v_set.priority, 0);
    v_source := mq_internal.reader_name(v_set.source);
    IF p_bodies LIKE '"%' OR p_bodies LIKE E'%\n"%' OR octet_length(p_bodies) > 16777216 THEN
        SELECT array_agg(l.item ORDER BY l.n), min(l.n) FILTER (WHERE octet_length(l.item) > 16777216)
        INTO v_bodies, v_bad
        FROM mq_internal.split_list('bodies', p_bodies) AS l;
    END IF;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', format(
            'bodies: line %s: must be a text of up to 16 MiB (16,777,216 bytes)', v_bad));
    END IF;
    v_queue := mq_internal.policy(p_type);
    v_by_id := CASE WHEN v_queue.grouped OR v_queue.ring OR v_queue.fair
        OR current_setting('transaction_isolation') <> 'read committed' THEN v_queue.grouped END;
    -- Plain lines are split and inserted in one step: building and checking a list first made the call a tenth slower.
    WITH sent AS (
        INSERT INTO mq.message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, source)
        SELECT v_run_at, v_now, v_priority, v_set.max_attempts, p_type, b.body, v_set.headers, v_set.group_key, v_source
        FROM (
            SELECT unnest(v_bodies)
            UNION ALL
            SELECT line FROM string_to_table(CASE WHEN v_bodies IS NULL THEN p_bodies END, E'\n') AS line WHERE line <> ''
        ) AS b (body)
        LIMIT 10001
        RETURNING id
    ), later AS (
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type)
        SELECT id, v_run_at, v_priority, 0, p_type FROM sent WHERE v_run_at > v_now
    ), grouped AS (
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        SELECT id, 0, p_type, coalesce(v_set.group_key, '') FROM sent WHERE v_queue.grouped AND v_run_at <= v_now
    ), ready AS (
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        SELECT v_run_at, id, v_priority, 0, p_type, v_by_id,
            mq_internal.lane(v_queue.fair OR v_queue.grouped, v_priority, v_set.group_key)
        FROM sent WHERE v_run_at <= v_now
    )
    SELECT count(*) INTO count FROM sent;
    IF count NOT BETWEEN 1 AND 10000 THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('bodies: must be 1 to 10,000 lines, not %s',
            (SELECT count(*) FROM mq_internal.split_list('bodies', p_bodies))));
    END IF;
    IF v_run_at < v_now THEN
        PERFORM mq_internal.lower_mark(p_type);
    END IF;
    PERFORM mq_internal.wake(p_type);
END
$$;
