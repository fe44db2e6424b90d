-- key_json: the SQL expression for the key, as JSON, of row r of a watched table.
-- Arguments: p_label (the table's name in messages)
CREATE OR REPLACE FUNCTION mq_internal.key_json(p_label text, p_relation oid) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_json text;
    v_names text[];
BEGIN
    -- A key column was renamed or changed its type: until watch_table is called again, a different expression is needed.
    SELECT w.key_json INTO v_json
    FROM mq.watched AS w
    WHERE w.label = p_label AND w.key_types = ARRAY(
        SELECT a.atttypid FROM unnest(w.key_names) WITH ORDINALITY AS k (name, n)
        JOIN pg_attribute AS a ON a.attrelid = p_relation AND a.attname = k.name
        ORDER BY k.n
    );
    IF v_json IS NOT NULL THEN
        RETURN v_json;
    END IF;
    v_names := mq_internal.primary_key(p_relation);
    IF v_names IS NULL THEN
        RETURN quote_literal('{}') || '::text';
    END IF;
    RETURN mq_internal.plain_json(p_relation, v_names, 'r');
END
$$;
