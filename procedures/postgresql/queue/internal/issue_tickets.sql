-- issue_tickets: write tickets for groups of a grouped queue that have due messages and are not blocked.
--
-- The first message of a group may be one that another transaction is cancelling. So the first message gets a ticket, and
-- also the first message that no transaction is deleting. An extra ticket does no harm. A visible ticket is left alone:
-- inserting it again would wait for the transaction that deletes it. A claim that drops tickets of a blocked group has
-- committed before this call.
CREATE OR REPLACE FUNCTION mq_internal.issue_tickets(p_queue mq.queue, p_groups text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
    v_groups text[];
    v_mark mq.mark;
BEGIN
    SELECT array_agg(f.id), array_agg(u.group_key) INTO v_ids, v_groups
    FROM unnest(p_groups) AS u (group_key)
    CROSS JOIN LATERAL (
        SELECT id FROM mq.grouped WHERE type = p_queue.type AND group_key = u.group_key
        ORDER BY type, group_key, id
        LIMIT 1
    ) AS f;
    IF v_ids IS NULL THEN
        RETURN;
    END IF;
    SELECT v_ids || array_agg(n.id), v_groups || array_agg(u.group_key) INTO v_ids, v_groups
    FROM unnest(v_groups) AS u (group_key)
    CROSS JOIN LATERAL (
        SELECT id FROM mq.grouped WHERE type = p_queue.type AND group_key = u.group_key
        ORDER BY type, group_key, id
        LIMIT 1
        FOR KEY SHARE SKIP LOCKED
    ) AS n;
    INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
    SELECT m.run_at, m.id, m.priority, g.attempts, m.type, true, m.lane
    -- Start from the ids, not from statistics: a join may read the whole group, which can be long.
    FROM unnest(v_ids, v_groups) AS u (id, group_key)
    CROSS JOIN LATERAL (
        SELECT *, mq_internal.lane(p_queue.fair OR p_queue.grouped, priority, group_key) AS lane FROM mq.message WHERE id = u.id OFFSET 0
    ) AS m
    CROSS JOIN LATERAL (
        SELECT attempts FROM mq.grouped WHERE type = p_queue.type AND group_key = u.group_key AND id = u.id OFFSET 0
    ) AS g
    WHERE NOT EXISTS (SELECT FROM mq_internal.rows_of(p_queue.type, u.id, m.lane))
    ON CONFLICT DO NOTHING;
    -- Takes may have passed over the group's tickets: see pick.
    SELECT * INTO v_mark FROM mq.mark WHERE type = p_queue.type ORDER BY type, n DESC LIMIT 1;
    IF v_mark.run_at > '-infinity' AND EXISTS (
        SELECT FROM mq.message AS m
        WHERE m.id = ANY (v_ids) AND (m.priority, m.run_at, m.id) < (v_mark.priority, v_mark.run_at, v_mark.id)
    ) THEN
        PERFORM mq_internal.lower_mark(p_queue.type);
    END IF;
END
$$;
