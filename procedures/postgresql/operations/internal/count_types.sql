-- count_types: count the rows of each type in one of the queue's tables, claims exactly, others up to a limit.
-- Arguments: p_table (ready, delayed, batch, grouped or dead), p_cap (a count above it need not be exact)
-- Returns: type; first and second: the messages that are ready, due and delayed, active and expired, or dead; oldest:
--     the smallest run_at of ready or due messages; NULL: none
-- Transaction: reads only: each index entry once, but of a type with more than p_cap entries at most twice p_cap
CREATE OR REPLACE FUNCTION mq_internal.count_types(
    p_table text, p_type text, p_cap bigint, p_now timestamptz
) RETURNS TABLE (type text, first bigint, second bigint, oldest timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashagg = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    -- Without a limit for claims: consumers hold only so many messages.
    c_part CONSTANT integer := CASE WHEN p_table = 'batch' THEN 2147483647
        ELSE (p_cap + 1) * CASE WHEN p_type IS NULL THEN 2 ELSE 1 END END;
    -- Read a part of the index in its order: the count of each type, and the rows read for it.
    v_query text := CASE p_table
        WHEN 'ready' THEN 'SELECT type, count(*) AS rows, count(*) AS first, 0::bigint AS second, min(run_at) AS oldest
            FROM (SELECT type, run_at FROM mq.ready WHERE %s ORDER BY type, priority, run_at, id LIMIT $2) AS x GROUP BY type ORDER BY type'
        WHEN 'delayed' THEN 'SELECT type, count(*) AS rows, count(*) FILTER (WHERE run_at <= $3) AS first,
            count(*) FILTER (WHERE run_at > $3) AS second, min(run_at) FILTER (WHERE run_at <= $3) AS oldest
            FROM (SELECT type, run_at FROM mq.delayed WHERE %s ORDER BY type, run_at, id LIMIT $2) AS x GROUP BY type ORDER BY type'
        WHEN 'batch' THEN 'SELECT type, count(*) AS rows,
            coalesce(sum(cardinality(ids)) FILTER (WHERE lease_until > $3), 0)::bigint AS first,
            coalesce(sum(cardinality(ids)) FILTER (WHERE lease_until <= $3), 0)::bigint AS second, NULL::timestamptz AS oldest
            FROM (SELECT type, ids, lease_until FROM mq.batch WHERE %s ORDER BY type, lease_until LIMIT $2) AS x GROUP BY type ORDER BY type'
        WHEN 'grouped' THEN 'SELECT x.type, count(*) AS rows, count(*) AS first, 0::bigint AS second, min(m.run_at) AS oldest
            FROM (SELECT type, id FROM mq.grouped WHERE %s ORDER BY type, group_key, id LIMIT $2) AS x
            CROSS JOIN LATERAL (SELECT run_at FROM mq.message WHERE id = x.id OFFSET 0) AS m GROUP BY x.type ORDER BY x.type'
        WHEN 'dead' THEN 'SELECT type, count(*) AS rows, count(*) AS first, 0::bigint AS second, NULL::timestamptz AS oldest
            FROM (SELECT type FROM mq.dead WHERE %s ORDER BY type, died_at, id LIMIT $2) AS x GROUP BY type ORDER BY type'
        END;
    -- For one type, due and delayed messages are counted separately, each from its own start.
    v_delayed CONSTANT text := 'SELECT $1 AS type, d.rows + w.rows AS rows, d.rows AS first, w.rows AS second, d.oldest
        FROM (SELECT count(*) AS rows, min(run_at) AS oldest
            FROM (SELECT run_at FROM mq.delayed WHERE %1$s AND run_at <= $3 ORDER BY type, run_at LIMIT $2) AS x) AS d
        CROSS JOIN (SELECT count(*) AS rows
            FROM (SELECT FROM mq.delayed WHERE %1$s AND run_at > $3 ORDER BY type, run_at LIMIT $2) AS x) AS w';
    v_condition text := CASE WHEN p_type IS NULL THEN 'type > $1' ELSE 'type = $1' END;
    v_from text := coalesce(p_type, '');
    v_row record;
    v_last bigint;
    v_rows bigint;
BEGIN
    LOOP
        v_rows := 0;
        FOR v_row IN EXECUTE format(CASE WHEN p_table = 'delayed' AND p_type IS NOT NULL THEN v_delayed ELSE v_query END, v_condition)
            USING v_from, c_part, p_now LOOP
            IF v_rows > 0 THEN
                RETURN NEXT;
            END IF;
            type := v_row.type;
            first := v_row.first;
            second := v_row.second;
            oldest := v_row.oldest;
            v_last := v_row.rows;
            v_rows := v_rows + v_row.rows;
        END LOOP;
        EXIT WHEN v_rows = 0;
        v_from := type;
        -- The last type of a full part may have more rows: read it again from its start, unless the count already exceeds
        -- the cap.
        IF p_type IS NOT NULL OR v_rows < c_part OR v_last > p_cap THEN
            IF p_table = 'delayed' AND p_type IS NULL AND v_rows = c_part AND first > 0 THEN
                -- The part ended before the messages that are not due.
                SELECT count(*) INTO second
                FROM (SELECT FROM mq.delayed AS d WHERE d.type = v_from AND d.run_at > p_now LIMIT p_cap + 1) AS d;
            END IF;
            RETURN NEXT;
            EXIT WHEN p_type IS NOT NULL OR v_rows < c_part;
            v_condition := 'type > $1';
        ELSE
            v_condition := 'type >= $1';
        END IF;
    END LOOP;
END
$$;
