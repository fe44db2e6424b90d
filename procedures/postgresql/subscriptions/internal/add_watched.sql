-- add_watched: store a watched table, for a caller with the right to create triggers on it.
CREATE OR REPLACE FUNCTION mq_internal.add_watched(p_label text, p_schema text, p_name text, p_pass text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_table oid := mq_internal.relation_of(p_schema, p_name);
    v_keys text[] := mq_internal.primary_key(v_table);
    v_label text := CASE p_schema WHEN 'public' THEN '' ELSE p_schema || '.' END || p_name;
BEGIN
    PERFORM mq_internal.require_pass(p_pass, v_table, 'watch', '');
    IF p_label <> v_label THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('the table is %s, not %s', v_label, p_label));
    END IF;
    IF strpos(p_schema || p_name, '.') > 0 THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s has a dot in its name or schema: messages could not distinguish '
            'it from a table of another schema', v_label));
    END IF;
    INSERT INTO mq.watched AS w (label, key_names, key_types, key_json)
    SELECT p_label, v_keys, (
        SELECT array_agg(a.atttypid ORDER BY k.n) FROM unnest(v_keys) WITH ORDINALITY AS k (name, n)
        JOIN pg_attribute AS a ON a.attrelid = v_table AND a.attname = k.name
    ), mq_internal.plain_json(v_table, v_keys, 'r')
    ON CONFLICT (label) DO UPDATE
    SET key_names = excluded.key_names, key_types = excluded.key_types, key_json = excluded.key_json;
END
$$;
