-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   p_type (1 to 200 characters), p_bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string), p_options (a flat
--              JSON object, for all messages; limits as in send_with): run_at, delay_seconds, priority, group_key,
--              max_attempts, headers, source
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     SELECT mq.send_batch('email', E'{"to":"ada@example.org"}\n{"to":"alan@example.org"}', '{"priority": 5}');
CREATE OR REPLACE FUNCTION mq.send_batch(p_type text, p_bodies text, p_options text DEFAULT NULL, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    -- Assign the transaction ID before the settings are read: see convert_rows.
    v_me xid8 := pg_current_xact_id();
    v_queue mq.queue;
    v_by_id boolean;
    v_source text := mq_internal.consumer_name(NULL);
    v_bodies text[];
    v_bad bigint;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
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
    IF p_options IS NOT NULL THEN
        affected := mq_internal.send_lines(v_queue, v_by_id, v_now, p_bodies, v_bodies, p_options);
    ELSE
        -- Plain lines are split and inserted in one step: building and checking a list first made the call a tenth slower.
        WITH sent AS (
            INSERT INTO mq.message (run_at, created_at, priority, type, body, source)
            SELECT v_now, v_now, 0, p_type, b.body, v_source
            FROM (
                SELECT unnest(v_bodies)
                UNION ALL
                SELECT line FROM string_to_table(CASE WHEN v_bodies IS NULL THEN p_bodies END, E'\n') AS line WHERE line <> ''
            ) AS b (body)
            LIMIT 10001
            RETURNING id
        ), grouped AS (
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            SELECT id, 0, p_type, '' FROM sent WHERE v_queue.grouped
        )
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        SELECT v_now, id, 0, 0, p_type, v_by_id, mq_internal.lane(v_queue.fair OR v_queue.grouped, 0, NULL) FROM sent;
        GET DIAGNOSTICS affected = ROW_COUNT;
    END IF;
    IF affected NOT BETWEEN 1 AND 10000 THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('bodies: must be 1 to 10,000 lines, not %s',
            (SELECT count(*) FROM mq_internal.split_list('bodies', p_bodies))));
    END IF;
    PERFORM mq_internal.wake(p_type);
END
$$;
