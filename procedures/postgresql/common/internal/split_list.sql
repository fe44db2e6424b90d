-- split_list: split a list in the contract's format into its items.
-- Returns: n (the line's number), item (a line; the value of a line that is a JSON string); no row for an empty line
CREATE OR REPLACE FUNCTION mq_internal.split_list(p_argument text, p_list text) RETURNS TABLE (n bigint, item text)
LANGUAGE plpgsql AS $$
DECLARE
    v_line record;
BEGIN
    RETURN QUERY
        SELECT l.n, CASE WHEN starts_with(l.line, '"') THEN l.line::json #>> '{}' ELSE l.line END
        FROM string_to_table(p_list, E'\n') WITH ORDINALITY AS l (line, n) WHERE l.line <> '';
EXCEPTION WHEN data_exception THEN
    -- Only after a refused list: search for the bad line.
    FOR v_line IN
        SELECT l.n, l.line FROM string_to_table(p_list, E'\n') WITH ORDINALITY AS l (line, n)
        WHERE starts_with(l.line, '"')
    LOOP
        BEGIN
            PERFORM v_line.line::json #>> '{}';
        EXCEPTION WHEN data_exception THEN
            PERFORM mq_internal.raise_error('invalid_argument', format(
                '%s: line %s begins with a double quote and is not a JSON string that this database can hold: %s',
                p_argument, v_line.n, SQLERRM));
        END;
    END LOOP;
    RAISE;
END
$$;
