-- promote: move messages that are due after p_after, and up to p_until, from mq.delayed to mq.ready.
CREATE OR REPLACE FUNCTION mq_internal.promote(
    p_queue mq.queue, p_after timestamptz, p_until timestamptz, p_size bigint, OUT moved bigint,
    OUT first_run_at timestamptz
)
LANGUAGE plpgsql AS $$
DECLARE
    v_due bigint[];
    v_attempts smallint[];
BEGIN
    WITH due AS (
        DELETE FROM mq.delayed
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.delayed
            WHERE type = p_queue.type AND run_at > p_after AND run_at <= p_until
            ORDER BY type, run_at, id
            LIMIT p_size
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING run_at, id, priority, attempts
    ), moving AS (
        -- After an attempt the run_at is not the one that the message was sent with.
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        SELECT run_at, id, priority, attempts, p_queue.type, p_queue.grouped, CASE WHEN p_queue.fair OR p_queue.grouped THEN (
                SELECT mq_internal.lane(true, m.priority, m.group_key) FROM mq.message AS m WHERE m.id = due.id
            ) END
        FROM due
        ON CONFLICT DO NOTHING
    )
    SELECT count(*), min(run_at), array_agg(id), array_agg(attempts) INTO moved, first_run_at, v_due, v_attempts
    FROM due;
    IF p_queue.grouped AND moved > 0 THEN
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        SELECT m.id, d.attempts, m.type, coalesce(m.group_key, '')
        FROM unnest(v_due, v_attempts) AS d (id, attempts)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = d.id OFFSET 0) AS m
        ON CONFLICT DO NOTHING;
        -- A message that blocked its group returns: unblock the group; the message is its first one again. ORDER BY id
        -- selects the right index: see erase.
        DELETE FROM mq.group_lock WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (v_due) ORDER BY id));
    END IF;
END
$$;
