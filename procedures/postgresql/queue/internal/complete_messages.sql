-- complete_messages: complete messages: delete them, or archive them if the queue's policy is archive.
CREATE OR REPLACE FUNCTION mq_internal.complete_messages(
    p_queue mq.queue, p_ids bigint[], p_attempts smallint[], p_consumer text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
    v_results boolean;
    v_run boolean := cardinality(p_ids) > 1 AND mq_internal.is_run(p_ids);
    -- Few messages have steps or a result: a join would cost the others more than these checks.
    v_steps boolean := mq_internal.has_steps(p_ids, v_run);
BEGIN
    IF p_queue.on_complete = 'archive' THEN
        v_now := clock_timestamp();
        v_results := EXISTS (SELECT FROM mq.result WHERE id = ANY (p_ids));
        WITH done AS (
            DELETE FROM mq.message WHERE id = ANY (p_ids) RETURNING *
        )
        INSERT INTO mq.archive (id, completed_at, created_at, priority, attempts, month, type, body, headers, group_key,
            dedup_key, source, consumer, result, steps)
        SELECT d.id, v_now, d.created_at, d.priority, u.attempts, extract(month FROM v_now AT TIME ZONE 'UTC'), d.type,
            d.body, d.headers, d.group_key, d.dedup_key, d.source, p_consumer,
            CASE WHEN v_results THEN (SELECT r.result FROM mq.result AS r WHERE r.id = d.id) END,
            CASE WHEN v_steps THEN (
                SELECT json_agg(json_build_object('step', s.step, 'value', s.value, 'saved_at', s.saved_at) ORDER BY s.n)::text
                FROM mq.step AS s WHERE s.id = d.id
            ) END
        FROM done AS d
        JOIN unnest(p_ids, p_attempts) AS u (id, attempts) ON u.id = d.id;
        IF v_results THEN
            DELETE FROM mq.result WHERE id = ANY (p_ids);
        END IF;
    ELSIF v_run THEN
        DELETE FROM mq.message WHERE id BETWEEN p_ids[1] AND p_ids[cardinality(p_ids)];
    ELSE
        DELETE FROM mq.message WHERE id = ANY (p_ids);
    END IF;
    IF v_steps THEN
        DELETE FROM mq.step WHERE id = ANY (p_ids);
    END IF;
    IF p_queue.grouped THEN
        PERFORM mq_internal.free_groups(p_queue, p_ids);
    END IF;
    IF p_queue.max_active > 0 OR p_queue.group_max_active > 0 THEN
        PERFORM mq_internal.wake(p_queue.type);
    END IF;
END
$$;
