-- key_json: the SQL expression that makes the key of a watched table's row r as JSON.
-- Arguments:   p_label, p_relation (the table that the trigger has fired on)
-- Returns:     an expression
-- Errors:      none: whatever has become of the table's columns, its writers go on
-- Transaction: reads only
-- Example:     SELECT mq.key_json('stock', 'stock'::regclass);

CREATE OR REPLACE FUNCTION mq.key_json(
    p_label text,
    p_relation oid
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_watched mq.watched;
    v_names text[];
BEGIN
    SELECT * INTO v_watched FROM mq.watched WHERE label = p_label;
    -- A column that was renamed or given another type since needs another expression until the table is watched again.
    SELECT array_agg(a.attname ORDER BY k.n)
    INTO v_names
    FROM unnest(v_watched.key_names, v_watched.key_types) WITH ORDINALITY AS k (name, type, n)
    JOIN pg_attribute AS a ON a.attrelid = p_relation AND a.attname = k.name AND a.atttypid = k.type;
    IF v_names = v_watched.key_names::text[] THEN
        RETURN v_watched.key_json;
    END IF;
    v_names := mq.primary_key(p_relation);
    IF v_names IS NULL THEN
        RETURN quote_literal('{}');
    END IF;
    RETURN mq.row_json(p_relation, v_names, 'r');
END
$$;
