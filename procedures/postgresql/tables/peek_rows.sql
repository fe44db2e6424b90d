-- peek_rows: list the rows of a polling table that are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters), p_state (A claimed, N waiting, E dead; NULL: all three), p_size (1 to 10,000;
--              NULL: 20)
-- Returns:     id, row_key (a JSON object), state, attempts, consumer, run_at (A: end of the lease; N: next attempt; E: time of
--              death), error; by state, run_at and id
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks
-- Example:     SELECT * FROM mq.peek_rows('orders', 'E');
CREATE OR REPLACE FUNCTION mq.peek_rows(
    p_name text,
    p_state text DEFAULT NULL,
    p_size bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    row_key text,
    state text,
    attempts integer,
    consumer text,
    run_at timestamptz,
    error text
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_table oid;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    IF p_state NOT IN ('A', 'N', 'E') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'state: must be A, N or E');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    v_polled := mq_internal.polled_settings(p_name, NULL);
    IF v_polled.name IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('name: no table is adopted as %s', p_name));
    END IF;
    v_table := mq_internal.relation_of(v_polled.table_schema, v_polled.table_name);
    IF v_table IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('table: there is no %I.%I any more', v_polled.table_schema, v_polled.table_name));
    ELSIF v_table <> v_polled.table_id AND v_polled.queue_id = 'mq.polled'::regclass THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%I.%I is not the table that was adopted: unadopt_table, '
            'then adopt_table again', v_polled.table_schema, v_polled.table_name));
    END IF;
    -- Keys and errors are data of the table: only those who may read the table see them.
    PERFORM mq_internal.require_rights(v_table, 'read', '');
    RETURN QUERY
    SELECT e.id, e.key_json, e.state::text, e.attempts::integer, e.consumer, e.run_at, e.error
    FROM mq.my_polled_row AS e
    WHERE e.name = p_name AND (p_state IS NULL OR e.state = p_state::"char")
    ORDER BY e.state, e.run_at, e.id
    LIMIT coalesce(p_size, 20);
END
$$;
