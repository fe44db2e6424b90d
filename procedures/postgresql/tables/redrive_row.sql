-- redrive_row: retry one dead row of a polling table, with its attempts set back to 0.
-- Arguments:   p_name (1 to 200 characters), p_id (the number of the row's claim, as peek_rows lists it)
-- Returns:     affected: 1; 0 when no dead row has this number
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked the row
-- Example:     SELECT mq.redrive_row('orders', 17);
CREATE OR REPLACE FUNCTION mq.redrive_row(
    p_name text,
    p_id bigint,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL; redrive_rows retries all dead rows');
    END IF;
    affected := mq_internal.redrive_polled(p_name, p_id, 1);
END
$$;
