-- plain_json: the SQL expression that turns a row into JSON, safe to run with other rights than the owner's.
-- Arguments: p_columns (names as in the catalog, in output order)
--
-- Built-in types become JSON as usual. A value of any other type becomes a text from the type's output function, which
-- only a superuser can create; to_json would call a cast created by the type's owner. Common key types are concatenated
-- as texts, because the expression runs for each changed row and row_to_json takes three times as long.
CREATE OR REPLACE FUNCTION mq_internal.plain_json(p_table oid, p_columns text[], p_alias text) RETURNS text
LANGUAGE sql STABLE SET search_path = mq, pg_temp AS $$
    SELECT format($f$'{' || %s || '}'$f$, string_agg(
        format($f$%L || coalesce(%s, 'null')$f$, to_json(a.attname::text) || ':', format(CASE
            WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN '%1$I.%2$I::text'
            WHEN a.atttypid = 'uuid'::regtype THEN $f$'"' || %1$I.%2$I::text || '"'$f$
            WHEN b.base = 'bytea'::regtype THEN $f$'"' || translate(encode(%1$I.%2$I, 'base64'), E'\n', '') || '"'$f$
            WHEN b.base < 16384 THEN 'to_json(%1$I.%2$I)::text'
            ELSE $f$to_json(CASE WHEN num_nulls(%1$I.%2$I) = 0 THEN format('%%s', %1$I.%2$I) END)::text$f$ END,
            p_alias, a.attname)), $f$ || ',' || $f$ ORDER BY array_position(p_columns, a.attname::text)))
    FROM pg_attribute AS a
    CROSS JOIN LATERAL (
        WITH RECURSIVE d (base) AS (
            SELECT a.atttypid
            UNION ALL
            SELECT t.typbasetype FROM d JOIN pg_type AS t ON t.oid = d.base WHERE t.typbasetype <> 0
        )
        SELECT d.base FROM d JOIN pg_type AS t ON t.oid = d.base WHERE t.typbasetype = 0
    ) AS b
    WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY (p_columns);
$$;
