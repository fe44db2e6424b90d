-- take_group: take the first messages of a group that is not blocked; if it has no token left, delay its first message
--             instead.
-- Arguments:   p_queue (the policy), p_group_key ('' for none), p_size (maximum number of messages; 1 in an ordered queue)
-- Returns:     ids and attempts (the number of the new attempt), parallel arrays, NULL when there are none; put_off: the
--              first message was delayed until the next token; leave: another transaction has locked the group's messages,
--              so the ticket must stay
-- Transaction: joins the caller's, which holds the group (lock_group); never waits

CREATE OR REPLACE FUNCTION mq_internal.take_group(
    p_queue mq.queue,
    p_group_key text,
    p_size bigint,
    OUT ids bigint[],
    OUT attempts smallint[],
    OUT put_off boolean,
    OUT leave boolean
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz;
    v_tokens integer;
    v_full_at timestamptz;
    v_size integer := CASE WHEN p_queue.ordered THEN 1 ELSE p_size END;
    v_first bigint;
BEGIN
    put_off := false;
    leave := true;
    IF p_queue.group_rate > 0 THEN
        v_now := clock_timestamp();
        SELECT full_at INTO v_full_at FROM mq.bucket
        WHERE type = p_queue.type AND group_key = p_group_key
        FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM mq.bucket WHERE type = p_queue.type AND group_key = p_group_key) THEN
            RETURN;  -- the bucket is full and is being deleted
        END IF;
        IF v_full_at > v_now + make_interval(secs => p_queue.group_rate_seconds) THEN
            -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
            v_full_at := v_now + make_interval(secs => p_queue.group_rate_seconds);
            UPDATE mq.bucket SET full_at = v_full_at WHERE type = p_queue.type AND group_key = p_group_key;
        END IF;
        v_tokens := mq_internal.tokens(v_full_at, v_now, p_queue.group_rate, p_queue.group_rate_seconds);
        put_off := v_tokens = 0;
        v_size := least(v_size, greatest(v_tokens, 1));
    END IF;

    -- In an ordered queue take only the first message. In other queues skip messages that others have locked.
    SELECT id INTO v_first FROM mq.grouped
    WHERE type = p_queue.type AND group_key = p_group_key
    ORDER BY type, group_key, id
    LIMIT 1;
    leave := FOUND;
    WITH taken AS (
        DELETE FROM mq.grouped AS g
        WHERE ctid = ANY (ARRAY(
            SELECT ctid
            FROM mq.grouped
            WHERE type = p_queue.type AND group_key = p_group_key AND id >= v_first
                AND (NOT p_queue.ordered OR id = v_first)
            ORDER BY type, group_key, id
            LIMIT v_size
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING g.id, g.attempts
    )
    SELECT array_agg(t.id ORDER BY t.id), array_agg((t.attempts + 1)::smallint ORDER BY t.id) INTO ids, attempts FROM taken AS t;
    put_off := put_off AND ids IS NOT NULL;
    IF ids IS NULL THEN
        RETURN;  -- no messages, or others are cancelling or purging them
    END IF;
    leave := false;
    IF put_off THEN
        PERFORM mq_internal.put_off(p_queue, p_group_key, ids[1], (attempts[1] - 1)::smallint,
            mq_internal.full_after(v_full_at, v_now, 1, p_queue.group_rate, p_queue.group_rate_seconds));
        ids := NULL;
    ELSIF p_queue.group_rate > 0 THEN
        v_full_at := mq_internal.full_after(v_full_at, v_now, cardinality(ids), p_queue.group_rate, p_queue.group_rate_seconds);
        INSERT INTO mq.bucket AS b (type, group_key, full_at)
        VALUES (p_queue.type, p_group_key, v_full_at)
        ON CONFLICT (type, group_key) DO UPDATE SET full_at = excluded.full_at;
    END IF;
END
$$;
