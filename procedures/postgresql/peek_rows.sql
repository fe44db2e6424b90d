-- peek_rows: look at the rows of an adopted table that are claimed, wait for another attempt, or are dead.
-- Arguments:   p_name, p_state (A, N or E; NULL: all three), p_size (1 to 10,000; NULL: 100)
-- Returns:     id, key, state, attempts, reader, run_at, error; by state, run_at and id
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     SELECT * FROM mq.peek_rows('orders', 'E');

CREATE OR REPLACE FUNCTION mq.peek_rows(
    p_name text,
    p_state text DEFAULT NULL,
    p_size integer DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    key text,
    state text,
    attempts integer,
    reader text,
    run_at timestamptz,
    error text
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq.require_name('name', p_name, false);
    IF p_state NOT IN ('A', 'N', 'E') THEN
        PERFORM mq.raise_error('invalid_argument', 'state: must be A, N or E');
    END IF;
    PERFORM mq.require_range('size', p_size, 1, 10000);
    IF NOT EXISTS (SELECT FROM mq.polled WHERE name = p_name) THEN
        PERFORM mq.raise_error('not_found', format('name: no table is adopted as %s', p_name));
    END IF;
    RETURN QUERY
    SELECT e.id, e.key_json, e.state::text, e.attempts::integer, e.reader, coalesce(b.lease_until, e.run_at), e.error
    FROM mq.polled_row AS e
    LEFT JOIN mq.polled_batch AS b ON b.batch_key = e.batch_key
    WHERE e.name = p_name AND (p_state IS NULL OR e.state = p_state::"char")
    ORDER BY e.state, e.run_at, e.id
    LIMIT coalesce(p_size, 100);
END
$$;
