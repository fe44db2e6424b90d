-- report_changes: trigger function of watched tables: send one message per changed row and subscription.
-- Transaction: the writer's
--
-- Every operator may create triggers with this function. So it ignores the trigger's arguments: it reports the table that
-- the trigger fires on, under the name that this has now.
--
-- When an update changes the key, nothing in the old and the new row links them. The server adds both to their transition
-- tables at the same moment, so the n-th old row belongs to the n-th new row: see tests/engines and
-- docs/decisions/0012_subscriptions.md. There are fewer new rows than old rows only when a trigger of the table drops a row
-- that moves to another partition. Then no old key is sent.
CREATE OR REPLACE FUNCTION mq_internal.report_changes() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    -- Rows per call of send_changes: the long keys of more rows might not fit into an array.
    c_part CONSTANT integer := 10000;
    -- Planned for each statement, which is much of the cost of a change of one row. Planning two plain queries takes a third
    -- of the time of one with a join.
    c_keys CONSTANT text := 'SELECT array_agg(%s) FROM (SELECT * FROM %s LIMIT %s) AS r';
    c_parts CONSTANT text := 'SELECT array_agg(c.key ORDER BY c.n), array_agg(c.old_key ORDER BY c.n) FROM (%1$s) AS c'
        ' GROUP BY (c.n - 1) / %2$s ORDER BY (c.n - 1) / %2$s';
    v_action text := left(TG_OP, 1);
    v_label text := CASE TG_TABLE_SCHEMA WHEN 'public' THEN '' ELSE TG_TABLE_SCHEMA || '.' END || TG_TABLE_NAME;
    v_key text;
    v_zone text;
    v_digits text;
    v_style text;
    v_keys text[];
    v_old_keys text[];
BEGIN
    PERFORM FROM mq.subscription WHERE label = v_label AND action = v_action;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- add_watched refuses these names, because another table could have the same name in messages.
    IF strpos(TG_TABLE_SCHEMA || TG_TABLE_NAME, '.') > 0 THEN
        RETURN NULL;
    END IF;
    -- If a trigger names no transition tables, these names mean temporary tables or views of the writer. Their functions
    -- would run with the rights of the queue's owner.
    IF coalesce(to_regclass('new_rows'), to_regclass('old_rows')) IS NOT NULL THEN
        PERFORM FROM pg_trigger
        WHERE tgrelid = TG_RELID AND tgname = TG_NAME AND (TG_OP = 'DELETE' OR tgnewtable = 'new_rows')
            AND (TG_OP = 'INSERT' OR tgoldtable = 'old_rows');
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    v_key := mq_internal.key_json(v_label, TG_RELID);
    IF strpos(v_key, 'json(') > 0 THEN
        -- The JSON texts depend on these settings, see row_json. A SET clause of the function would slow down every
        -- statement.
        v_zone := current_setting('timezone');
        v_digits := current_setting('extra_float_digits');
        v_style := current_setting('intervalstyle');
        PERFORM set_config('timezone', 'UTC', true), set_config('extra_float_digits', '1', true),
            set_config('intervalstyle', 'postgres', true);
    END IF;
    EXECUTE format(c_keys, v_key, CASE TG_OP WHEN 'DELETE' THEN 'old_rows' ELSE 'new_rows' END, c_part) INTO v_keys;
    IF TG_OP = 'UPDATE' THEN
        EXECUTE format(c_keys, v_key, 'old_rows', c_part) INTO v_old_keys;
    END IF;
    IF cardinality(v_keys) < c_part THEN
        PERFORM mq_internal.send_changes(v_label, v_action, v_keys,
            CASE WHEN cardinality(v_keys) = cardinality(v_old_keys) THEN v_old_keys END);
    ELSIF v_keys IS NOT NULL THEN
        FOR v_keys, v_old_keys IN EXECUTE format(c_parts, format(CASE TG_OP
            WHEN 'INSERT' THEN 'SELECT row_number() OVER () AS n, %1$s AS key, NULL AS old_key FROM new_rows AS r'
            WHEN 'DELETE' THEN 'SELECT row_number() OVER () AS n, %1$s AS key, NULL AS old_key FROM old_rows AS r'
            ELSE 'SELECT a.n, a.key, b.key AS old_key FROM (SELECT row_number() OVER () AS n, %1$s AS key FROM new_rows AS r) AS a'
                ' LEFT JOIN (SELECT row_number() OVER () AS n, %1$s AS key FROM old_rows AS r) AS b'
                ' ON b.n = a.n AND (SELECT count(*) FROM old_rows) = (SELECT count(*) FROM new_rows)'
        END, v_key), c_part)
        LOOP
            PERFORM mq_internal.send_changes(v_label, v_action, v_keys, v_old_keys);
        END LOOP;
    END IF;
    IF v_zone IS NOT NULL THEN
        PERFORM set_config('timezone', v_zone, true), set_config('extra_float_digits', v_digits, true),
            set_config('intervalstyle', v_style, true);
    END IF;
    RETURN NULL;
END
$$;
