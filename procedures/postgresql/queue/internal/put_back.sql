-- put_back: make messages ready again, at the position where they were sent; delete those that were cancelled.
CREATE OR REPLACE FUNCTION mq_internal.put_back(p_queue mq.queue, p_ids bigint[], p_attempts smallint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.drop_cancelled(p_queue, p_ids);
    IF p_queue.grouped THEN
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
    INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
    SELECT CASE WHEN r.found THEN clock_timestamp() ELSE m.run_at END, m.id, m.priority, u.attempts, m.type, p_queue.grouped, m.lane
    FROM unnest(p_ids, p_attempts) AS u (id, attempts)
    CROSS JOIN LATERAL (
        SELECT *, mq_internal.lane(p_queue.fair OR p_queue.grouped, priority, group_key) AS lane FROM mq.message WHERE id = u.id OFFSET 0
    ) AS m
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM mq_internal.rows_of(p_queue.type, u.id, m.lane)) AS found) AS r
    ON CONFLICT DO NOTHING;
    PERFORM mq_internal.lower_mark(p_queue.type);
    PERFORM mq_internal.wake(p_queue.type);
END
$$;
