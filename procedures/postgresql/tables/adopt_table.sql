-- adopt_table: use a user's table as a queue, without changing the table.
-- Arguments:   p_name (1 to 200 characters), p_table (table or schema.table; default schema: public), p_options (a flat
--              JSON object): key_columns (1 to 100 names separated by commas; default all columns, with equal_rows 1),
--              order_column (default the key columns), status_column (default none), ready_value, active_value (default: a
--              claim does not write the status), done_value, error_value, on_complete (keep or delete; keep), late_seconds
--              (0 to 315,360,000; only without a status and with keep), equal_rows (0 or 1; 0), max_attempts (1 to 1,000;
--              25)
-- Returns:     created: 1; 0 when the table is already adopted with the same settings
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     SELECT mq.adopt_table('orders', 'shop.orders', '{"key_columns": "id", "status_column": "status",
--              "ready_value": "N", "active_value": "A", "done_value": "D", "error_value": "E"}');
CREATE OR REPLACE FUNCTION mq.adopt_table(
    p_name text,
    p_table text,
    p_options text DEFAULT NULL,
    OUT created smallint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_set jsonb := mq_internal.read_options(p_options, 'options', '{"key_columns": "text", "order_column": "text",
        "status_column": "text", "ready_value": "text", "active_value": "text", "done_value": "text", "error_value": "text",
        "on_complete": "text", "late_seconds": [0, 315360000], "equal_rows": [0, 1], "max_attempts": [1, 1000]}');
    v_on_complete text := coalesce(v_set ->> 'on_complete', 'keep');
    v_late_seconds bigint := v_set ->> 'late_seconds';
    v_equal_rows boolean := coalesce(v_set ->> 'equal_rows', '0') = '1';
    v_ready text := v_set ->> 'ready_value';
    v_active text := v_set ->> 'active_value';
    v_done text := v_set ->> 'done_value';
    v_error text := v_set ->> 'error_value';
    v_table record;
    v_keys text[];
    v_order text;
    v_status text;
    v_delete boolean := v_on_complete = 'delete';
    v_wanted text[];
    v_bad text;
    v_idents text[];
    v_types text[];
    v_new mq.polled;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    IF v_on_complete NOT IN ('keep', 'delete') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'on_complete: must be keep or delete');
    END IF;
    SELECT * INTO v_table FROM mq_internal.find_table('table', p_table);
    IF v_set ->> 'key_columns' IS NOT NULL THEN
        SELECT array_agg(c.name ORDER BY c.n) INTO v_keys FROM mq_internal.find_columns('key_columns', v_table.id, v_set ->> 'key_columns') AS c;
    END IF;
    v_order := mq_internal.find_one_column('order_column', v_table.id, v_set ->> 'order_column');
    v_status := mq_internal.find_one_column('status_column', v_table.id, v_set ->> 'status_column');
    SELECT a.attname INTO v_bad
    FROM pg_attribute AS a
    WHERE a.attrelid = v_table.id AND a.attname = ANY (v_keys || v_order || v_status) AND mq_internal.operator_of(a.atttypid, 3) IS NULL
    LIMIT 1;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('column %s of %s has a type without a B-tree order',
            quote_ident(v_bad), v_table.label));
    END IF;
    PERFORM mq_internal.require_rights(v_table.id, CASE WHEN v_status IS NULL THEN CASE WHEN v_delete THEN 'delete' ELSE 'read' END
        WHEN v_delete THEN 'write, delete' ELSE 'write' END, coalesce(v_status, ''));

    IF v_status IS NULL THEN
        SELECT a.name INTO v_bad
        FROM (VALUES ('ready_value', v_ready), ('active_value', v_active), ('done_value', v_done),
            ('error_value', v_error)) AS a (name, value)
        WHERE a.value IS NOT NULL LIMIT 1;
        IF v_bad IS NOT NULL THEN
            PERFORM mq_internal.raise_error('invalid_argument', v_bad || ': needs a status_column');
        END IF;
    ELSE
        IF v_status = ANY (v_keys) THEN
            PERFORM mq_internal.raise_error('invalid_argument', 'key_columns: must not include the status_column');
        ELSIF v_status = v_order THEN
            PERFORM mq_internal.raise_error('invalid_argument', 'order_column: must not be the status_column');
        END IF;
        PERFORM mq_internal.require_status(v_table.id, v_status, v_ready, v_active, v_done, v_error, v_delete);
    END IF;
    IF v_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete) THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'late_seconds: allowed only without a status_column and with keep');
    ELSIF v_equal_rows AND v_keys IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'equal_rows: allowed only without key_columns');
    END IF;

    PERFORM mq_internal.require_distinct_rows(v_table.id, v_table.label, v_keys, v_status, v_equal_rows);

    v_wanted := array_remove(v_status || coalesce(CASE WHEN v_order IS NOT NULL THEN ARRAY[v_order] END, v_keys, '{}'), NULL);
    IF v_status IS NULL AND NOT v_delete THEN
        IF v_late_seconds IS NULL THEN
            PERFORM mq_internal.raise_error('unsuitable_table',
                format('without a status, rows of %s that commit late are missed: '
                'give late_seconds, the longest delay, or 0 to accept this', v_table.label));
        END IF;
        IF v_order IS NULL AND cardinality(v_keys) IS DISTINCT FROM 1 THEN
            PERFORM mq_internal.raise_error('unsuitable_table',
                'order_column: needed without a status and with keep, unless there is exactly one key column');
        END IF;
        v_order := coalesce(v_order, v_keys[1]);
        IF EXISTS (
            SELECT FROM pg_attribute AS a
            JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE a.attrelid = v_table.id AND a.attname = v_order AND NOT (a.attnotnull AND t.typcategory IN ('N', 'S', 'D'))
        ) THEN
            PERFORM mq_internal.raise_error('unsuitable_table',
                format('order_column: %s must be NOT NULL, and a number, a text or a time', v_order));
        END IF;
        v_wanted := ARRAY[v_order];
    ELSIF v_status IS NULL AND v_keys IS NULL THEN
        v_wanted := NULL;
    END IF;
    PERFORM mq_internal.require_index(v_table.id, v_wanted);

    SELECT array_agg(a.attname::text ORDER BY a.attnum), array_agg(format_type(a.atttypid, -1) ORDER BY a.attnum)
    INTO v_idents, v_types
    FROM pg_attribute AS a
    WHERE a.attrelid = v_table.id AND a.attnum > 0 AND NOT a.attisdropped
        AND CASE WHEN v_keys IS NULL THEN a.attname IS DISTINCT FROM v_status ELSE a.attname = ANY (v_keys) END;
    v_new := ROW(p_name, v_table.table_schema, v_table.table_name, v_table.id, 0, v_keys, v_idents, v_types,
        mq_internal.find_one_column('order_column', v_table.id, v_set ->> 'order_column'), v_status, v_ready, v_active, v_done,
        v_error, v_on_complete, v_late_seconds, v_equal_rows, coalesce((v_set ->> 'max_attempts')::bigint, 25),
        NULL, NULL, NULL, NULL);
    created := mq_internal.add_polled(v_new, (
        SELECT m.pass FROM mq.my_pass AS m
        WHERE m.id = v_table.id AND m.need = mq_internal.polled_need(v_new) AND m.written = coalesce(v_status, '')
    ));
END
$$;
