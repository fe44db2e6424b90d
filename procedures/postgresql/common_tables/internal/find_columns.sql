-- find_columns: the columns that an argument names.
-- Arguments: p_columns (names as written in SQL, separated by commas)
-- Returns: n (position in the argument), name, quoted (for SQL), type, nullable, attnum (number in the catalog)
CREATE OR REPLACE FUNCTION mq_internal.find_columns(p_argument text, p_table oid, p_columns text) RETURNS TABLE (
    n bigint, name text, quoted text, type text, nullable boolean, attnum smallint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_names text[] := mq_internal.split_names(p_argument, p_columns, ',', 100);
    v_bad text;
BEGIN
    SELECT l.name INTO v_bad
    FROM unnest(v_names) WITH ORDINALITY AS l (name, n)
    GROUP BY l.name HAVING count(*) > 1
    ORDER BY min(l.n) LIMIT 1;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('%s: names column %s twice', p_argument, v_bad));
    END IF;
    RETURN QUERY
        SELECT l.n, l.name, quote_ident(l.name), format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.attnum
        FROM unnest(v_names) WITH ORDINALITY AS l (name, n)
        JOIN pg_attribute AS a ON a.attrelid = p_table AND a.attname = l.name AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY l.n;
    SELECT l.name INTO v_bad
    FROM unnest(v_names) WITH ORDINALITY AS l (name, n)
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = p_table AND a.attname = l.name AND a.attnum > 0 AND NOT a.attisdropped
    )
    ORDER BY l.n LIMIT 1;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('%s: the table has no column %s', p_argument, v_bad));
    END IF;
END
$$;
