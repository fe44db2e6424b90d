-- adopt_table: let the rows of a table of yours be claimed as work, as the table is.
-- Arguments:   p_name, p_table, p_key_columns (NULL: all columns together, see p_equal_rows), p_order_column, p_status_column,
--              p_ready_value, p_active_value, p_done_value, p_error_value, p_on_complete (keep or delete; NULL: keep),
--              p_late_seconds (without a status and with keep), p_equal_rows (0 or 1), p_max_attempts (1 to 1,000; NULL: 10)
-- Returns:     created: 1, or 0 when it was adopted so already
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     SELECT mq.adopt_table('orders', 'shop.orders', 'id', NULL, 'status', 'N', 'A', 'D', 'E');

CREATE OR REPLACE FUNCTION mq.adopt_table(
    p_name text,
    p_table text,
    p_key_columns text DEFAULT NULL,
    p_order_column text DEFAULT NULL,
    p_status_column text DEFAULT NULL,
    p_ready_value text DEFAULT NULL,
    p_active_value text DEFAULT NULL,
    p_done_value text DEFAULT NULL,
    p_error_value text DEFAULT NULL,
    p_on_complete text DEFAULT NULL,
    p_late_seconds integer DEFAULT NULL,
    p_equal_rows integer DEFAULT NULL,
    p_max_attempts integer DEFAULT NULL,
    OUT created integer
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_table record;
    v_keys text[];
    v_order text;
    v_status text;
    v_delete boolean := coalesce(p_on_complete, 'keep') = 'delete';
    v_indexed text[];
    v_wanted text[];
    v_bad text;
    v_caller text := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
    v_rights text;
    v_role text;
    v_new mq.polled;
    v_old mq.polled;
BEGIN
    PERFORM mq.require_name('name', p_name, false);
    IF p_on_complete NOT IN ('keep', 'delete') THEN
        PERFORM mq.raise_error('invalid_argument', 'on_complete: must be keep or delete');
    END IF;
    PERFORM mq.require_range('late_seconds', p_late_seconds, 0, 315360000);
    PERFORM mq.require_range('equal_rows', p_equal_rows, 0, 1);
    PERFORM mq.require_range('max_attempts', p_max_attempts, 1, 1000);
    SELECT * INTO v_table FROM mq.find_table('table', p_table);
    IF p_key_columns IS NOT NULL THEN
        SELECT array_agg(c.name ORDER BY c.n) INTO v_keys FROM mq.find_columns('key_columns', v_table.id, p_key_columns) AS c;
    END IF;
    v_order := mq.find_one_column('order_column', v_table.id, p_order_column);
    v_status := mq.find_one_column('status_column', v_table.id, p_status_column);

    IF v_status IS NULL THEN
        SELECT a.name INTO v_bad
        FROM (VALUES ('ready_value', p_ready_value), ('active_value', p_active_value), ('done_value', p_done_value),
            ('error_value', p_error_value)) AS a (name, value)
        WHERE a.value IS NOT NULL LIMIT 1;
        IF v_bad IS NOT NULL THEN
            PERFORM mq.raise_error('invalid_argument', v_bad || ': needs a status_column');
        END IF;
    ELSE
        IF v_status = ANY (v_keys) THEN
            PERFORM mq.raise_error('invalid_argument', 'key_columns: must not hold the status_column');
        ELSIF v_status = v_order THEN
            PERFORM mq.raise_error('invalid_argument', 'order_column: must not be the status_column');
        END IF;
        PERFORM mq.require_status(v_table.id, v_status, p_ready_value, p_active_value, p_done_value, p_error_value, v_delete);
    END IF;
    IF p_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete) THEN
        PERFORM mq.raise_error('invalid_argument', 'late_seconds: only without a status_column and with keep');
    ELSIF p_equal_rows = 1 AND v_keys IS NOT NULL THEN
        PERFORM mq.raise_error('invalid_argument', 'equal_rows: only without key_columns');
    END IF;

    IF v_keys IS NULL THEN
        IF coalesce(p_equal_rows, 0) = 0 THEN
            PERFORM mq.raise_error('unsuitable_table',
                format('equal rows of %s cannot be told apart: give key_columns, or accept '
                'that with equal_rows 1', v_table.label));
        END IF;
        v_bad := mq.column_without_equality(v_table.id, v_status);
        IF v_bad IS NOT NULL THEN
            PERFORM mq.raise_error('unsuitable_table',
                format('without key_columns all columns are compared, and %s of %s cannot be',
                v_bad, v_table.label));
        END IF;
    ELSIF NOT EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = v_table.id AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
            AND NOT EXISTS (
                SELECT FROM generate_series(0, i.indnkeyatts - 1) AS g (n)
                LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[g.n]
                WHERE a.attname IS NULL OR NOT a.attnotnull OR a.attname <> ALL (v_keys)
            )
    ) THEN
        PERFORM mq.raise_error('unsuitable_table', format('key_columns: %s has no primary key or unique index of NOT NULL '
            'columns within them', v_table.label));
    END IF;

    v_wanted := array_remove(v_status || coalesce(CASE WHEN v_order IS NOT NULL THEN ARRAY[v_order] END, v_keys, '{}'), NULL);
    IF v_status IS NULL AND NOT v_delete THEN
        IF p_late_seconds IS NULL THEN
            PERFORM mq.raise_error('unsuitable_table',
                format('without a status a row of %s that comes late in the order would be '
                'missed: give late_seconds, after which none comes any more, or 0 to accept that', v_table.label));
        END IF;
        IF v_order IS NULL AND cardinality(v_keys) IS DISTINCT FROM 1 THEN
            PERFORM mq.raise_error('unsuitable_table',
                'without a status and with keep rows are claimed in an order: give order_column');
        END IF;
        v_order := coalesce(v_order, v_keys[1]);
        IF EXISTS (
            SELECT FROM pg_attribute AS a
            JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE a.attrelid = v_table.id AND a.attname = v_order AND NOT (a.attnotnull AND t.typcategory IN ('N', 'S', 'D'))
        ) THEN
            PERFORM mq.raise_error('unsuitable_table', format('order_column: %s must be NOT NULL, and a number, a text or a time',
                v_order));
        END IF;
        v_wanted := ARRAY[v_order];
    ELSIF v_status IS NULL AND v_keys IS NULL THEN
        v_wanted := NULL;
    END IF;
    IF v_wanted IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam
        CROSS JOIN LATERAL (
            SELECT array_agg(a.attname::text ORDER BY g.n) AS names, max(i.indoption[g.n]) AS high, min(i.indoption[g.n]) AS low
            FROM generate_series(0, least(i.indnkeyatts, cardinality(v_wanted)) - 1) AS g (n)
            LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[g.n]
        ) AS k
        WHERE i.indrelid = v_table.id AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
            -- Read forwards, or as a whole backwards.
            AND k.names = v_wanted AND k.high = k.low AND k.low IN (0, 3)
    ) THEN
        PERFORM mq.raise_error('unsuitable_table', format('claims would read the whole table, it needs: CREATE INDEX ON %s (%s)',
            v_table.quoted, (SELECT string_agg(quote_ident(w.name), ', ' ORDER BY w.n)
                FROM unnest(v_wanted) WITH ORDINALITY AS w (name, n))));
    END IF;

    -- Nobody gets at a table through the queue who may not himself, and the queue's owner is who will read and write it.
    v_rights := CASE WHEN v_status IS NULL AND NOT v_delete THEN 'SELECT' WHEN v_delete THEN 'SELECT, UPDATE, DELETE'
        ELSE 'SELECT, UPDATE' END;
    FOREACH v_role IN ARRAY ARRAY[v_caller, current_user] LOOP
        IF NOT (has_schema_privilege(v_role, v_table.schema_name, 'USAGE') AND has_table_privilege(v_role, v_table.id, 'SELECT')
            AND (v_rights NOT LIKE '%UPDATE%' OR has_table_privilege(v_role, v_table.id, 'UPDATE')
                OR v_status IS NOT NULL AND has_column_privilege(v_role, v_table.id, v_status, 'UPDATE'))
            AND (v_rights NOT LIKE '%DELETE' OR has_table_privilege(v_role, v_table.id, 'DELETE')))
        THEN
            PERFORM mq.raise_error('unsuitable_table', format(CASE WHEN v_role = v_caller THEN '%4$s must hold %1$s on %2$s: '
                ELSE 'the queue needs a right: ' END || 'GRANT %1$s ON %2$s TO %3$s%5$s', v_rights, v_table.quoted,
                quote_ident(v_role), v_role, CASE WHEN NOT has_schema_privilege(v_role, v_table.schema_name, 'USAGE')
                THEN format('; GRANT USAGE ON SCHEMA %I TO %I', v_table.schema_name, v_role) ELSE '' END));
        END IF;
    END LOOP;

    v_new := ROW(p_name, v_table.schema_name, v_table.table_name, v_keys, mq.find_one_column('order_column', v_table.id,
        p_order_column), v_status, p_ready_value, p_active_value, p_done_value, p_error_value, coalesce(p_on_complete, 'keep'),
        p_late_seconds, coalesce(p_equal_rows, 0) = 1, coalesce(p_max_attempts, 10), NULL, NULL, NULL, NULL);
    SELECT p.name INTO v_bad
    FROM mq.polled AS p
    WHERE p.schema_name = v_new.schema_name AND p.table_name = v_new.table_name AND p.name <> p_name
        AND (p.status_column IS NOT NULL OR p.on_complete = 'delete') AND (v_status IS NOT NULL OR v_delete)
        AND p.status_column IS NOT DISTINCT FROM v_status AND p.ready_value IS NOT DISTINCT FROM p_ready_value;
    IF v_bad IS NOT NULL THEN
        PERFORM mq.raise_error('already_exists', format('%s is adopted as %s already: its rows would be claimed twice',
            v_table.label,
            v_bad));
    END IF;
    INSERT INTO mq.polled SELECT v_new.* ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS created = ROW_COUNT;
    IF created = 0 THEN
        SELECT * INTO v_old FROM mq.polled WHERE name = p_name;
        v_old.place := NULL;
        v_old.place_hash := NULL;
        v_old.copies := NULL;
        v_old.looked_at := NULL;
        IF v_old IS DISTINCT FROM v_new THEN
            PERFORM mq.raise_error('already_exists', format('name: %s is adopted with other settings: release_table first',
                p_name));
        END IF;
    END IF;
END
$$;
