-- put_back: make messages ready again, at the position where they were sent.
-- Arguments:   p_type, p_ids and p_attempts (parallel arrays), p_grouped (the policy)

CREATE OR REPLACE FUNCTION mq_internal.put_back(
    p_type text,
    p_ids bigint[],
    p_attempts smallint[],
    p_grouped boolean
) RETURNS void
LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
BEGIN
    IF p_grouped THEN
        PERFORM mq_internal.require_read_committed();
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        SELECT m.id, u.attempts, m.type, coalesce(m.group_key, '')
        FROM unnest(p_ids, p_attempts) AS u (id, attempts)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
        ON CONFLICT DO NOTHING;
        -- ORDER BY id selects the right index: see erase.
        DELETE FROM mq.group_lock WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (p_ids) ORDER BY id));
    END IF;
    -- Another claim may be dropping an old ticket: the new one gets the current time as its position.
    INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id)
    SELECT CASE WHEN r.id IS NULL THEN m.run_at ELSE clock_timestamp() END, m.id, m.priority, u.attempts, m.type, true
    FROM unnest(p_ids, p_attempts) AS u (id, attempts)
    CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
    -- One search by key per message, with any statistics.
    LEFT JOIN LATERAL (SELECT t.id FROM mq.ready AS t WHERE t.type = p_type AND t.by_id AND t.id = u.id LIMIT 1) AS r ON true
    ON CONFLICT DO NOTHING;
    PERFORM mq_internal.lower_mark(p_type);
    PERFORM mq_internal.lower_ring(p_type, (SELECT min(u.id) FROM unnest(p_ids) AS u (id)));
    PERFORM mq_internal.wake(p_type);
END
$$;
