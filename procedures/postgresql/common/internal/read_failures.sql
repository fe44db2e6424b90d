-- read_failures: read the list of failures that finish_batch and finish_rows take.
-- Arguments: p_failures (one per line: id,retry_after_seconds,error; a line that does not begin with two such fields
--     continues the error above it)
-- Returns: id, retry (NULL: the queue's backoff), error (of several lines: cut at 4,000 characters)
CREATE OR REPLACE FUNCTION mq_internal.read_failures(p_failures text) RETURNS TABLE (
    id bigint, retry integer, error text
)
LANGUAGE plpgsql AS $$
DECLARE
    -- Errors are cut at this length anyway, so the rest is not copied from line to line.
    c_error CONSTANT integer := 4000;
    v_line record;
    v_parts text[];
    v_quoted boolean := true;
    v_empty integer := 0;
BEGIN
    FOR v_line IN
        SELECT l.n, l.line
        FROM string_to_table(p_failures, E'\n') WITH ORDINALITY AS l (line, n)
        ORDER BY l.n
    LOOP
        IF v_line.line = '' THEN
            v_empty := v_empty + 1;
            CONTINUE;
        END IF;
        v_parts := regexp_match(v_line.line, '^([0-9]{1,18}),(-1|[0-9]{0,9}),(.*)$');
        IF v_parts IS NULL OR nullif(v_parts[2], '')::bigint > 315360000 THEN
            IF v_quoted OR v_line.line ~ '^[0-9]+,[-0-9]*,' THEN
                PERFORM mq_internal.raise_error('invalid_argument', format('failures: line %s: must be id,retry_after_seconds,error '
                    || 'where retry_after_seconds is empty, -1, or 0 to 315,360,000', v_line.n));
            END IF;
            IF char_length(error) < c_error THEN
                error := left(error || repeat(E'\n', least(v_empty, c_error) + 1) || v_line.line, c_error);
            END IF;
            v_empty := 0;
            CONTINUE;
        END IF;
        IF id IS NOT NULL THEN
            RETURN NEXT;
        END IF;
        id := v_parts[1];
        retry := nullif(v_parts[2], '');
        error := v_parts[3];
        v_empty := 0;
        v_quoted := starts_with(error, '"');
        IF v_quoted THEN
            BEGIN
                error := error::json #>> '{}';
            EXCEPTION WHEN data_exception THEN
                PERFORM mq_internal.raise_error('invalid_argument', format('failures: line %s: the error begins with a double '
                    || 'quote and is not a JSON string that this database can hold', v_line.n));
            END;
        END IF;
    END LOOP;
    IF id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$;
