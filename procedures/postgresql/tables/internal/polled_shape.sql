-- polled_shape: return the SQL fragments that read and write a polling table.
-- Returns: a JSON object: shape (a to f), table (its oid), pass (see my_pass), quoted, path (the search_path for the
--     table's triggers), ident (expression over the alias t), stored (columns of a stored identity, for
--     jsonb_to_record), match (condition over t and such a record r), status, status_type, status_is (condition over t
--     and $1, the status), sort, order, order_type, later, not_before and not_later (the operators >, >= and <=),
--     indexed (columns that an index must begin with)
-- Transaction: reads the catalog; locks the table against changes of its columns until the caller commits
CREATE OR REPLACE FUNCTION mq_internal.polled_shape(p_polled mq.polled) RETURNS jsonb
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_table oid := mq_internal.relation_of(p_polled.table_schema, p_polled.table_name);
    v_quoted text := format('%I.%I', p_polled.table_schema, p_polled.table_name);
    v_label text := CASE WHEN p_polled.table_schema <> 'public' THEN quote_ident(p_polled.table_schema) || '.' ELSE '' END
        || quote_ident(p_polled.table_name);
    v_need text := mq_internal.polled_need(p_polled);
    v_order_column text := coalesce(p_polled.order_column,
        CASE WHEN cardinality(p_polled.key_columns) = 1 THEN p_polled.key_columns[1] END);
    v_bad text;
    v_ident record;
    v_status record;
    v_order record;
BEGIN
    IF v_table IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('table: there is no %s any more', v_label));
    ELSIF v_table <> p_polled.table_id AND p_polled.queue_id = 'mq.polled'::regclass THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s is not the table that was adopted: unadopt_table, then adopt_table '
            'again', v_label));
    END IF;
    PERFORM mq_internal.require_rights(v_table, v_need, coalesce(p_polled.status_column, ''));
    -- This lock keeps the columns unchanged while the catalog is read and used.
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', v_quoted);

    SELECT w.name INTO v_bad
    FROM unnest(p_polled.ident_columns || p_polled.order_column || p_polled.status_column, p_polled.ident_types)
        AS w (name, type)
    LEFT JOIN pg_attribute AS a ON a.attrelid = v_table AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped
    WHERE w.name IS NOT NULL AND (a.attname IS NULL OR w.type <> format_type(a.atttypid, -1))
    LIMIT 1;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s has no column %s any more, or it has another type: '
            'unadopt_table, then adopt_table again', v_label, quote_ident(v_bad)));
    END IF;
    SELECT string_agg(CASE WHEN a.attnotnull THEN format('t.%1$I %2$s r.%1$I', a.attname, o.equal)
            ELSE format('coalesce(t.%1$I %2$s r.%1$I, t.%1$I IS NULL AND r.%1$I IS NULL)', a.attname, o.equal) END, ' AND ') AS match,
        '(SELECT pg_catalog.to_jsonb(i) FROM (SELECT ' || string_agg(format('t.%I', a.attname), ', ') || ') AS i)' AS value,
        string_agg(format('%I %s', a.attname, format_type(a.atttypid, -1)), ', ') AS stored INTO v_ident
    FROM pg_attribute AS a
    CROSS JOIN LATERAL (SELECT mq_internal.operator_of(a.atttypid, 3)) AS o (equal)
    WHERE a.attrelid = v_table AND a.attname = ANY (p_polled.ident_columns);
    SELECT quote_ident(a.attname) AS quoted, format_type(a.atttypid, -1) AS type,
        format('t.%1$I %2$s $1::%4$s AND t.%1$I %3$s $1::%4$s', a.attname, mq_internal.operator_of(a.atttypid, 4),
            mq_internal.operator_of(a.atttypid, 2), format_type(a.atttypid, -1)) AS is_1 INTO v_status
    FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = p_polled.status_column;
    SELECT quote_ident(a.attname) AS quoted, format_type(a.atttypid, -1) AS type, mq_internal.operator_of(a.atttypid, 5) AS later,
        mq_internal.operator_of(a.atttypid, 4) AS not_before, mq_internal.operator_of(a.atttypid, 2) AS not_later
    INTO v_order
    FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = v_order_column;

    RETURN jsonb_build_object(
        'shape', CASE
            WHEN p_polled.status_column IS NOT NULL THEN CASE WHEN p_polled.key_columns IS NULL THEN 'c' ELSE 'a' END
            WHEN p_polled.on_complete = 'delete' THEN CASE WHEN p_polled.key_columns IS NULL THEN 'f' ELSE 'e' END
            ELSE CASE WHEN p_polled.key_columns IS NULL THEN 'd' ELSE 'b' END END,
        'table', v_table,
        'pass', (
            SELECT m.pass FROM mq.my_pass AS m
            WHERE m.id = v_table AND m.need = v_need AND m.written = coalesce(p_polled.status_column, '')
        ),
        'quoted', v_quoted,
        'path', format('pg_catalog, %I, public, pg_temp', p_polled.table_schema),
        'ident', v_ident.value,
        'stored', v_ident.stored,
        'match', v_ident.match,
        'status', v_status.quoted,
        'status_type', v_status.type,
        -- A range, not an equality: after an equality the planner can leave the status out of the sort, and may scan the
        -- index on the order alone.
        'status_is', v_status.is_1,
        'sort', coalesce('t.' || quote_ident(p_polled.order_column),
            (SELECT string_agg('t.' || quote_ident(k.name), ', ' ORDER BY k.n)
            FROM unnest(p_polled.key_columns) WITH ORDINALITY AS k (name, n))),
        'order', v_order.quoted,
        'order_type', v_order.type,
        'later', v_order.later,
        'not_before', v_order.not_before,
        'not_later', v_order.not_later,
        'indexed', CASE WHEN p_polled.status_column IS NULL AND (p_polled.on_complete = 'keep' OR p_polled.order_column IS NOT NULL)
            THEN jsonb_build_array(v_order_column)
            WHEN p_polled.status_column IS NOT NULL OR p_polled.key_columns IS NOT NULL THEN to_jsonb(array_remove(
                p_polled.status_column || coalesce(CASE WHEN p_polled.order_column IS NOT NULL THEN ARRAY[p_polled.order_column] END,
                p_polled.key_columns, '{}'), NULL)) END);
END
$$;
