-- find_rows: find and lock the rows of entries, if they still have the status that the queue left.
-- Arguments: p_skip (true: skip rows that others have locked; false: wait)
-- Returns: id, part and place (tableoid and ctid of the row), row_json (NULL without p_skip)
-- Transaction: locks the rows
CREATE OR REPLACE FUNCTION mq_internal.find_rows(
    p_polled mq.polled, p_shape jsonb, p_ids bigint[], p_skip boolean
) RETURNS TABLE (id bigint, part oid, place tid, row_json text)
LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 1
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_active boolean;
    v_ids bigint[];
    v_idents jsonb[];
    v_value text;
    v_status text;
    -- Rows that are never written are not locked: a lock would need a right that the caller does not need otherwise.
    v_lock text := CASE WHEN p_shape->>'shape' IN ('b', 'd') THEN '' ELSE 'FOR UPDATE OF t' END
        || CASE WHEN p_skip AND p_shape->>'shape' NOT IN ('b', 'd') THEN ' SKIP LOCKED' ELSE '' END;
    v_row text := CASE WHEN p_skip AND p_ids <> '{}' THEN mq_internal.row_json((p_shape->>'table')::oid, NULL, 't') ELSE 'NULL::text' END;
BEGIN
    -- Read the entries here, with a cached plan: the dynamic statements below are planned each time.
    FOR v_active, v_ids, v_idents IN
        SELECT active, array_agg(id ORDER BY id), array_agg(ident ORDER BY id)
        FROM mq.my_polled_row WHERE id = ANY (p_ids) AND name = p_polled.name GROUP BY active
    LOOP
        v_value := CASE WHEN v_active THEN p_polled.active_value ELSE p_polled.ready_value END;
        v_status := CASE
            WHEN p_polled.status_column IS NULL THEN 'true'
            WHEN v_value IS NULL THEN format('t.%s IS NULL', p_shape->>'status')
            ELSE p_shape->>'status_is' END;
        IF p_polled.key_columns IS NOT NULL THEN
            -- IS TRUE keeps the planner from using an index on the status: it would read all rows of this status for each
            -- row. It must use the key.
            v_status := format('(%s) IS TRUE', v_status);
            RETURN QUERY EXECUTE format('SELECT e.id, t.tableoid, t.ctid, %s
                FROM unnest($2, $3) AS e (id, ident)
                CROSS JOIN LATERAL jsonb_to_record(e.ident) AS r (%s)
                JOIN %s AS t ON %s AND %s
                %s', v_row, p_shape->>'stored', p_shape->>'quoted', p_shape->>'match', v_status, v_lock)
            USING v_value, v_ids, v_idents;
        ELSE
            -- Of equal rows, as many as are claimed.
            RETURN QUERY EXECUTE format('SELECT g.ids[c.n], c.part, c.place, c.row_json
                FROM (
                    SELECT array_agg(e.id ORDER BY e.id) AS ids, e.ident FROM unnest($2, $3) AS e (id, ident) GROUP BY e.ident
                ) AS g
                CROSS JOIN LATERAL jsonb_to_record(g.ident) AS r (%s)
                CROSS JOIN LATERAL (
                    SELECT x.*, row_number() OVER () AS n
                    FROM (
                        SELECT t.tableoid AS part, t.ctid AS place, %s AS row_json
                        FROM %s AS t WHERE %s AND %s LIMIT cardinality(g.ids) %s
                    ) AS x
                ) AS c', p_shape->>'stored', v_row, p_shape->>'quoted', p_shape->>'match', v_status, v_lock)
            USING v_value, v_ids, v_idents;
        END IF;
    END LOOP;
END
$$;
