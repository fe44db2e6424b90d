-- row_json: the SQL expression that turns a row into JSON, for dynamic SQL.
-- Arguments: p_columns (names as in the catalog, in output order; NULL: all)
--
-- The caller that executes it must set timezone = 'UTC', extra_float_digits = 1 and intervalstyle = 'postgres', as a
-- function does with SET clauses: the texts of times and floats depend on the session.
CREATE OR REPLACE FUNCTION mq_internal.row_json(p_table oid, p_columns text[], p_alias text) RETURNS text
LANGUAGE sql STABLE SET search_path = mq, pg_temp AS $$
    -- Not json_build_object, which takes at most 50 columns.
    SELECT format('(SELECT pg_catalog.row_to_json(r)::pg_catalog.text FROM (SELECT %s) AS r)',
        string_agg(format(CASE WHEN b.base = 'bytea'::regtype
            THEN $f$pg_catalog.translate(pg_catalog.encode(%1$I.%2$I, 'base64'), E'\n', '') AS %2$I$f$
            ELSE '%1$I.%2$I' END, p_alias, a.attname), ', ' ORDER BY coalesce(array_position(p_columns, a.attname::text),
            a.attnum)))
    FROM pg_attribute AS a
    CROSS JOIN LATERAL (
        -- A domain is written like its base type.
        WITH RECURSIVE d (base) AS (
            SELECT a.atttypid
            UNION ALL
            SELECT t.typbasetype FROM d JOIN pg_type AS t ON t.oid = d.base WHERE t.typbasetype <> 0
        )
        SELECT d.base FROM d JOIN pg_type AS t ON t.oid = d.base WHERE t.typbasetype = 0
    ) AS b
    WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped
        AND (p_columns IS NULL OR a.attname = ANY (p_columns));
$$;
