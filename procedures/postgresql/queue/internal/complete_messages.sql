-- complete_messages: complete messages: delete them, or archive them if the queue's policy is archive.
CREATE OR REPLACE FUNCTION mq_internal.complete_messages(
    p_queue mq.queue, p_ids bigint[], p_attempts smallint[], p_consumer text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
    v_month smallint;
    v_results boolean;
    v_run boolean := cardinality(p_ids) > 1 AND mq_internal.is_run(p_ids);
BEGIN
    IF p_queue.on_complete = 'archive' THEN
        v_now := clock_timestamp();
        v_month := extract(month FROM v_now AT TIME ZONE 'UTC');
        -- Few messages have a result: a join would cost the others more than this check.
        v_results := EXISTS (SELECT FROM mq.result WHERE id = ANY (p_ids));
        WITH done AS (
            DELETE FROM mq.message WHERE id = ANY (p_ids) RETURNING *
        )
        INSERT INTO mq.archive (id, completed_at, created_at, priority, attempts, month, type, body, headers, group_key,
            dedup_key, source, consumer, result)
        SELECT d.id, v_now, d.created_at, d.priority, u.attempts, v_month, d.type,
            d.body, d.headers, d.group_key, d.dedup_key, d.source, p_consumer,
            CASE WHEN v_results THEN (SELECT r.result FROM mq.result AS r WHERE r.id = d.id) END
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
    -- Only now: the DELETE has waited for a transaction that was saving a step.
    IF mq_internal.has_steps(p_ids, v_run) THEN
        UPDATE mq.archive AS a
        SET steps = (
            SELECT json_agg(json_build_object('step', s.step, 'value', s.step_value,
                'saved_at', to_char(s.saved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) ORDER BY s.n)
            FROM mq.step AS s WHERE s.id = a.id
        )
        WHERE p_queue.on_complete = 'archive' AND a.id = ANY (p_ids) AND a.month = v_month;
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
