-- read_object: the members of a flat JSON object, in their order; no row for NULL.
-- Arguments: p_argument (begins the text of the error)
-- Returns: name, value (decoded; of a number as it is written; NULL for null), kind (string, number, boolean or null)
CREATE OR REPLACE FUNCTION mq_internal.read_object(p_object text, p_argument text) RETURNS TABLE (
    name text, value text, kind text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_object json;
    v_fits boolean;
BEGIN
    BEGIN
        v_object := p_object;
        SELECT count(*) = count(DISTINCT m.key COLLATE "C") AND bool_and(json_typeof(m.value) NOT IN ('object', 'array'))
        INTO v_fits
        FROM json_each(v_object) AS m;
        IF v_fits THEN
            RETURN QUERY SELECT m.key, m.value #>> '{}', json_typeof(m.value) FROM json_each(v_object) AS m;
        END IF;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        v_fits := false;
    END;
    -- NULL: an object without members, or none.
    IF NOT v_fits THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            p_argument || ': must be a JSON object with unique names and no nested values');
    END IF;
END
$$;
