-- find_one_column: the one column that an argument names.
-- Arguments: p_column (as written in SQL; NULL: none)
CREATE OR REPLACE FUNCTION mq_internal.find_one_column(p_argument text, p_table oid, p_column text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[];
BEGIN
    IF p_column IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(c.name) INTO v_names FROM mq_internal.find_columns(p_argument, p_table, p_column) AS c;
    IF cardinality(v_names) <> 1 THEN
        PERFORM mq_internal.raise_error('invalid_argument', p_argument || ': must name exactly one column');
    END IF;
    RETURN v_names[1];
END
$$;
