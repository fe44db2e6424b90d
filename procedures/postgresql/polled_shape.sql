-- polled_shape: the pieces of SQL that an adopted table is read and written by.
-- Arguments:   p_polled (the adopted table)
-- Returns:     a JSON object: shape (a to f), quoted, path (the search_path of the table's triggers), ident, key, row
--              (expressions over the alias t),
--              match (condition over t and the row r that a stored identity stands for), status, status_type, sort,
--              order, order_type
-- Errors:      50005 not_found, 50006 unsuitable_table, when the table or a column is not there any more
-- Transaction: reads the catalog
-- Example:     SELECT mq.polled_shape(p) FROM mq.polled AS p;

CREATE OR REPLACE FUNCTION mq.polled_shape(
    p_polled mq.polled
) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_table oid;
    v_missing text;
    v_label text := CASE WHEN p_polled.schema_name <> 'public' THEN quote_ident(p_polled.schema_name) || '.' ELSE '' END
        || quote_ident(p_polled.table_name);
    v_match text;
    v_ident text;
    v_keys text[];
    v_status text;
    v_status_type text;
    v_order text;
    v_order_type text;
BEGIN
    SELECT c.oid INTO v_table
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = p_polled.schema_name AND c.relname = p_polled.table_name AND c.relkind IN ('r', 'p');
    IF v_table IS NULL THEN
        PERFORM mq.raise_error('not_found', format('table: there is no %s any more', v_label));
    END IF;
    SELECT string_agg(w.name, ', ') INTO v_missing
    FROM unnest(p_polled.key_columns || p_polled.order_column || p_polled.status_column) AS w (name)
    WHERE w.name IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = w.name AND NOT a.attisdropped
    );
    IF v_missing IS NOT NULL THEN
        PERFORM mq.raise_error('unsuitable_table', format('%s has no column %s any more', v_label, v_missing));
    END IF;

    SELECT string_agg(format(CASE WHEN a.attnotnull THEN 't.%1$I = r.%1$I' ELSE 't.%1$I IS NOT DISTINCT FROM r.%1$I' END,
            a.attname), ' AND ' ORDER BY a.attnum),
        'jsonb_build_object(' || string_agg(format('%L, t.%I', a.attname, a.attname), ', ' ORDER BY a.attnum) || ')',
        array_agg(a.attname::text ORDER BY a.attnum)
    INTO v_match, v_ident, v_keys
    FROM pg_attribute AS a
    WHERE a.attrelid = v_table AND a.attnum > 0 AND NOT a.attisdropped
        AND CASE WHEN p_polled.key_columns IS NULL THEN a.attname IS DISTINCT FROM p_polled.status_column
            ELSE a.attname = ANY (p_polled.key_columns) END;
    IF p_polled.key_columns IS NULL THEN
        -- A function takes 100 arguments at most, and a table may have more columns than half of that.
        v_ident := 'to_jsonb(t)' || coalesce(' - ' || quote_literal(p_polled.status_column) || '::text', '');
    END IF;
    SELECT quote_ident(a.attname), format_type(a.atttypid, -1) INTO v_status, v_status_type
    FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = p_polled.status_column;
    SELECT quote_ident(a.attname), format_type(a.atttypid, -1) INTO v_order, v_order_type
    FROM pg_attribute AS a
    WHERE a.attrelid = v_table
        AND a.attname = coalesce(p_polled.order_column, CASE WHEN cardinality(p_polled.key_columns) = 1
            THEN p_polled.key_columns[1] END);

    RETURN jsonb_build_object(
        'shape', CASE
            WHEN p_polled.status_column IS NOT NULL THEN CASE WHEN p_polled.key_columns IS NULL THEN 'c' ELSE 'a' END
            WHEN p_polled.on_complete = 'delete' THEN CASE WHEN p_polled.key_columns IS NULL THEN 'f' ELSE 'e' END
            ELSE CASE WHEN p_polled.key_columns IS NULL THEN 'd' ELSE 'b' END END,
        'label', v_label,
        'quoted', format('%I.%I', p_polled.schema_name, p_polled.table_name),
        'path', format('pg_catalog, %I, public, pg_temp', p_polled.schema_name),
        'ident', v_ident,
        'key', mq.row_json(v_table, coalesce(p_polled.key_columns, v_keys), 't'),
        'row', mq.row_json(v_table, NULL, 't'),
        'match', v_match,
        'status', v_status,
        'status_type', v_status_type,
        'sort', coalesce('t.' || quote_ident(p_polled.order_column),
            (SELECT string_agg('t.' || quote_ident(k.name), ', ' ORDER BY k.n)
            FROM unnest(p_polled.key_columns) WITH ORDINALITY AS k (name, n))),
        'order', v_order,
        'order_type', v_order_type);
END
$$;
