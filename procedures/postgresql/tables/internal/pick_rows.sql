-- pick_rows: find rows of a polling table to claim for the first time.
-- Arguments: p_place (true: start at the low-water mark)
-- Returns: part and place (tableoid and ctid), ident, key_json, row_json; sorted, hash and copy: the low-water mark
--     after this row
-- Transaction: skips rows that others have locked, where it locks rows at all
-- The settings: identities are compared as text, which must not depend on the session's settings. And a claim must scan the
-- index and stop when it has enough rows, also with outdated statistics.
CREATE OR REPLACE FUNCTION mq_internal.pick_rows(
    p_polled mq.polled, p_shape jsonb, p_size bigint, p_place boolean
) RETURNS TABLE (part oid, place tid, ident jsonb, key_json text, row_json text, sorted text, hash bigint, copy bigint)
LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET bytea_output = 'hex'
SET extra_float_digits = 1 SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_quoted text := p_shape->>'quoted';
    v_order text := 't.' || (p_shape->>'order');
    v_type text := p_shape->>'order_type';
    v_columns text := format('t.tableoid AS part, t.ctid AS place, %s AS ident, %s AS key_json, %s AS row_json, %s AS sorted, '
        'hashtextextended((%s)::text, 0) AS hash', p_shape->>'ident', mq_internal.row_json((p_shape->>'table')::oid, p_polled.ident_columns, 't'),
        mq_internal.row_json((p_shape->>'table')::oid, NULL, 't'),
        coalesce(v_order || '::text', 'NULL::text'), p_shape->>'ident');
    v_ready text := CASE
        WHEN p_polled.status_column IS NULL THEN 'true'
        WHEN p_polled.ready_value IS NULL THEN format('t.%s IS NULL', p_shape->>'status')
        ELSE p_shape->>'status_is' END;
    v_sort text := coalesce('ORDER BY ' || nullif(concat_ws(', ', 't.' || (p_shape->>'status'), p_shape->>'sort'), ''), '');
    -- With a status, dead rows are at error_value: a dead row that is ready again was set back by hand and is claimed.
    v_dead text := CASE WHEN p_polled.status_column IS NOT NULL THEN 'AND p.state <> ''E''' ELSE '' END;
    v_taken bigint;
    v_settled text;
    v_high text;
BEGIN
    IF p_shape->>'shape' IN ('a', 'e') THEN
        RETURN QUERY EXECUTE format('SELECT %s, 0::bigint FROM %s AS t WHERE %s %s AND NOT EXISTS (
                SELECT FROM mq.my_polled_row AS p
                WHERE p.name = $2 AND p.ident_hash = hashtextextended((%5$s)::text, 0) AND p.ident = %5$s %7$s
            ) %6$s LIMIT $3 FOR UPDATE OF t SKIP LOCKED', v_columns, v_quoted, v_ready,
            CASE WHEN p_place THEN format('AND %s %s $4::%s', v_order, p_shape->>'not_before', v_type) END, p_shape->>'ident', v_sort, v_dead)
        USING p_polled.ready_value, p_polled.name, p_size, p_polled.place;

    ELSIF p_shape->>'shape' IN ('c', 'f') THEN
        SELECT count(*) INTO v_taken FROM mq.my_polled_row
        WHERE name = p_polled.name AND NOT active AND (state <> 'E' OR p_polled.status_column IS NULL);
        -- Of p_size + v_taken rows, at least p_size are free, if the table has so many.
        RETURN QUERY EXECUTE format('SELECT part, place, ident, key_json, row_json, sorted, hash, copy
            FROM (
                SELECT x.*, row_number() OVER (PARTITION BY x.hash, x.ident ORDER BY x.n) AS copy
                FROM (
                    SELECT y.*, row_number() OVER () AS n
                    FROM (SELECT %s FROM %s AS t WHERE %s %s LIMIT $3 %s) AS y
                ) AS x
            ) AS x
            WHERE copy > (
                SELECT count(*) FROM mq.my_polled_row AS p
                WHERE p.name = $2 AND p.ident_hash = x.hash AND p.ident = x.ident AND NOT p.active %s
            )
            ORDER BY n LIMIT $4', v_columns, v_quoted, v_ready, v_sort,
            -- Without an active value nothing is written, and locks would only block others that finish the counted rows.
            CASE WHEN p_polled.active_value IS NOT NULL THEN 'FOR UPDATE OF t SKIP LOCKED' END, v_dead)
        USING p_polled.ready_value, p_polled.name, p_size + v_taken, p_size;

    ELSE
        v_settled := mq_internal.settled_place(p_polled, p_shape, v_now);
        IF v_settled IS NULL THEN
            RETURN;
        END IF;
        -- Find the last order value first: then only rows up to it are sorted.
        EXECUTE format('SELECT %1$s::text FROM %2$s AS t WHERE %1$s %5$s $1::%3$s %4$s ORDER BY %1$s LIMIT 1 OFFSET $3',
            v_order, v_quoted, v_type, CASE WHEN p_polled.place IS NOT NULL
            THEN format('AND %s %s $2::%s', v_order, p_shape->>'later', v_type) END, p_shape->>'not_later') INTO v_high
        USING v_settled, p_polled.place, p_size - 1;
        RETURN QUERY EXECUTE format('SELECT part, place, ident, key_json, row_json, sorted, hash, copy
            FROM (
                SELECT x.*, row_number() OVER (PARTITION BY x.o, x.hash ORDER BY x.ident::text) AS copy
                FROM (SELECT %s, %s AS o FROM %s AS t WHERE %2$s %7$s $1::%4$s %5$s) AS x
            ) AS x
            WHERE %6$s
            ORDER BY o, hash, copy LIMIT $5', v_columns, v_order, v_quoted, v_type,
            CASE WHEN p_polled.place IS NOT NULL THEN format('AND %s %s $2::%s', v_order, p_shape->>'not_before', v_type) END,
            CASE WHEN p_polled.place IS NULL THEN 'true'
                ELSE format('(o %s $2::%s OR hash > $3 OR hash = $3 AND copy > $4)', p_shape->>'later', v_type) END,
            p_shape->>'not_later')
        USING coalesce(v_high, v_settled), p_polled.place, p_polled.place_hash, p_polled.copies, p_size;
    END IF;
END
$$;
