-- erase: delete messages of one state, N or E; or A: the caller has ended the attempt of each.
-- Returns: the number of deleted messages; messages that are held or are being claimed at this moment stay
-- Transaction: never waits for a claim
CREATE OR REPLACE FUNCTION mq_internal.erase(p_queue mq.queue, p_ids bigint[], p_state text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_gone bigint[] := '{}';
    v_more bigint[];
    v_groups text[];
    v_rows tid[];
BEGIN
    IF p_state = 'N' THEN
        IF p_queue.grouped THEN
            PERFORM mq_internal.require_read_committed();
            SELECT array_agg(DISTINCT coalesce(m.group_key, '')) INTO v_groups FROM mq.message AS m WHERE m.id = ANY (p_ids);
            WITH gone AS (
                DELETE FROM mq.grouped
                WHERE ctid = ANY (ARRAY(
                    -- Start from the ids here too: another join order may read whole groups.
                    SELECT g.ctid
                    FROM unnest(p_ids) AS u (id)
                    CROSS JOIN LATERAL (SELECT group_key FROM mq.message WHERE id = u.id OFFSET 0) AS m
                    CROSS JOIN LATERAL (
                        SELECT h.ctid
                        FROM mq.grouped AS h
                        WHERE h.type = p_queue.type AND h.group_key = coalesce(m.group_key, '') AND h.id = u.id
                        ORDER BY h.type, h.group_key, h.id
                        FOR UPDATE SKIP LOCKED
                    ) AS g
                ))
                RETURNING id
            )
            SELECT coalesce(array_agg(id), '{}') INTO v_gone FROM gone;
        END IF;
        -- In a queue with groups, delete only the tickets of messages that are already deleted.
        v_rows := mq_internal.lock_places(p_queue.type, CASE WHEN p_queue.grouped THEN v_gone ELSE p_ids END, 'infinity');
        WITH gone AS (
            DELETE FROM mq.ready WHERE ctid = ANY (v_rows) RETURNING id
        )
        SELECT array_agg(id) INTO v_more FROM gone;
        IF NOT p_queue.grouped THEN
            v_gone := v_gone || v_more;
        END IF;
        WITH gone AS (
            DELETE FROM mq.delayed
            -- ORDER BY selects the primary key: the planner might otherwise choose an index that ends with the id, and
            -- read all of it for each id.
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.delayed WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE SKIP LOCKED))
            RETURNING id
        )
        SELECT array_agg(id) INTO v_more FROM gone;
        v_gone := v_gone || v_more;
    ELSIF p_state = 'A' THEN
        v_gone := p_ids;
    ELSE
        WITH gone AS (
            DELETE FROM mq.dead
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.dead WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE SKIP LOCKED))
            RETURNING id
        )
        SELECT coalesce(array_agg(id), '{}') INTO v_gone FROM gone;
    END IF;
    DELETE FROM mq.message WHERE id = ANY (v_gone);
    DELETE FROM mq.result WHERE id = ANY (v_gone);
    DELETE FROM mq.step WHERE id = ANY (v_gone);
    -- The deleted message may have been a group's first message in a retry delay, a dead letter that stopped its group, or
    -- the one with its group's ticket. set_queue may have changed the settings meanwhile.
    IF p_queue.grouped OR p_state = 'E' THEN
        WITH freed AS (
            DELETE FROM mq.group_lock
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (v_gone) ORDER BY id))
            RETURNING group_key
        )
        SELECT v_groups || array_agg(DISTINCT group_key) INTO v_groups FROM freed;
    END IF;
    IF v_groups IS NOT NULL THEN
        PERFORM mq_internal.require_read_committed();
        PERFORM mq_internal.issue_tickets(p_queue, v_groups);
    END IF;
    RETURN cardinality(v_gone);
END
$$;
