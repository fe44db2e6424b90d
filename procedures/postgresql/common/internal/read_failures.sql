-- read_failures: the items of finish_batch's list of failures.
-- Arguments:   p_failures (one a line: id,retry_after_seconds,error)
-- Returns:     id, retry (NULL: the queue's backoff), error
-- Errors:      50002 invalid_argument, naming the line
-- Transaction: reads nothing
-- Example:     SELECT * FROM mq.read_failures(E'17,30,busy\n18,-1,"two\\nlines"');

CREATE OR REPLACE FUNCTION mq.read_failures(
    p_failures text
) RETURNS TABLE (
    id bigint,
    retry integer,
    error text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_line record;
    v_parts text[];
    v_error text;
BEGIN
    FOR v_line IN
        SELECT l.n, l.line
        FROM string_to_table(p_failures, E'\n') WITH ORDINALITY AS l (line, n)
        WHERE l.line <> ''
        ORDER BY l.n
    LOOP
        v_parts := regexp_match(v_line.line, '^([0-9]{1,18}),(-1|[0-9]{0,9}),(.*)$');
        IF v_parts IS NULL OR nullif(v_parts[2], '')::bigint > 315360000 THEN
            PERFORM mq.raise_error('invalid_argument', format('failures: line %s: must be id,retry_after_seconds,error '
                || 'where retry_after_seconds is empty, -1, or 0 to 315,360,000', v_line.n));
        END IF;
        v_error := v_parts[3];
        IF starts_with(v_error, '"') THEN
            BEGIN
                v_error := v_error::json #>> '{}';
            EXCEPTION WHEN data_exception THEN
                PERFORM mq.raise_error('invalid_argument', format('failures: line %s: the error begins with a double '
                    || 'quote and is not a JSON string that this database can hold', v_line.n));
            END;
        END IF;
        RETURN QUERY SELECT v_parts[1]::bigint, nullif(v_parts[2], '')::integer, v_error;
    END LOOP;
END
$$;
