-- read_object: the members of a flat JSON object; no row for NULL.
-- Arguments: p_argument (the error's text begins with it)
-- Returns: name, value (decoded; numbers unchanged; NULL for null), kind (string, number, boolean or null)
CREATE OR REPLACE FUNCTION mq_internal.read_object(p_object text, p_argument text) RETURNS TABLE (
    name text, value text, kind text
)
LANGUAGE plpgsql AS $$
DECLARE
    v_fits boolean;
    v_names text[];
    v_values json[];
BEGIN
    BEGIN
        SELECT count(*) = count(DISTINCT m.key COLLATE "C"), array_agg(m.key), array_agg(m.value)
        INTO v_fits, v_names, v_values
        FROM json_each(p_object::json) AS m (key, value);
        -- An error discards the rows that were returned before. A second query for the rows would take a fifth more.
        FOR i IN 1..coalesce(cardinality(v_names), 0) LOOP
            name := v_names[i];
            value := v_values[i] #>> '{}';
            kind := json_typeof(v_values[i]);
            v_fits := v_fits AND kind NOT IN ('object', 'array');
            RETURN NEXT;
        END LOOP;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        v_fits := false;
    END;
    IF NOT v_fits THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            p_argument || ': must be a JSON object with unique names, no nested values and no NUL character');
    END IF;
END
$$;
