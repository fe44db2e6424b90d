-- pick_lost: find rows at active_value that have no entry.
-- Transaction: skips rows that others have locked
--
-- Another program has changed the key of a claimed row (without a key: any column), or has set the status itself. While the
-- old entry exists, there are as many entries as rows, and a handler may still be working on the row. Therefore a claim
-- takes only as many rows as there are rows in excess of entries.
CREATE OR REPLACE FUNCTION mq_internal.pick_lost(p_polled mq.polled, p_shape jsonb, p_size bigint) RETURNS TABLE (
    part oid, place tid, ident jsonb, key_json text, row_json text, sorted text, hash bigint, copy bigint
)
LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET bytea_output = 'hex'
SET extra_float_digits = 1 SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_columns text := format('t.tableoid AS part, t.ctid AS place, %s AS ident, %s AS key_json, %s AS row_json, NULL::text AS sorted, '
        'hashtextextended((%s)::text, 0) AS hash', p_shape->>'ident', mq_internal.row_json((p_shape->>'table')::oid, p_polled.ident_columns, 't'),
        mq_internal.row_json((p_shape->>'table')::oid, NULL, 't'), p_shape->>'ident');
    v_held bigint;
    v_lost bigint;
BEGIN
    -- Count both in one snapshot: rows may be finished during a claim.
    EXECUTE format('SELECT e.held, (SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT e.held + $2) AS c) - e.held
        FROM (SELECT count(*) AS held FROM mq.my_polled_row WHERE name = $3 AND active) AS e', p_shape->>'quoted',
        p_shape->>'status_is') INTO v_held, v_lost
    USING p_polled.active_value, p_size, p_polled.name;
    IF v_lost <= 0 THEN
        RETURN;
    END IF;
    IF p_polled.key_columns IS NOT NULL THEN
        RETURN QUERY EXECUTE format('SELECT %s, 0::bigint FROM %s AS t WHERE %s AND NOT EXISTS (
                SELECT FROM mq.my_polled_row AS p
                WHERE p.name = $2 AND p.ident_hash = hashtextextended((%4$s)::text, 0) AND p.ident = %4$s AND p.state <> ''E''
            ) LIMIT $3 FOR UPDATE OF t SKIP LOCKED', v_columns, p_shape->>'quoted', p_shape->>'status_is', p_shape->>'ident')
        USING p_polled.active_value, p_polled.name, v_lost;
    ELSE
        RETURN QUERY EXECUTE format('SELECT part, place, ident, key_json, row_json, sorted, hash, copy
            FROM (
                SELECT x.*, row_number() OVER (PARTITION BY x.hash, x.ident) AS copy
                FROM (SELECT %s FROM %s AS t WHERE %s LIMIT $3 FOR UPDATE OF t SKIP LOCKED) AS x
            ) AS x
            WHERE copy > (
                SELECT count(*) FROM mq.my_polled_row AS p
                WHERE p.name = $2 AND p.ident_hash = x.hash AND p.ident = x.ident AND p.active
            )
            LIMIT $4', v_columns, p_shape->>'quoted', p_shape->>'status_is')
        USING p_polled.active_value, p_polled.name, v_held + v_lost, v_lost;
    END IF;
END
$$;
