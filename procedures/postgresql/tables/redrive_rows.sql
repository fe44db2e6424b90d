-- redrive_rows: retry dead rows of a polling table, those that died first, with their attempts set back to 0.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked these rows
-- Example:     SELECT mq.redrive_rows('orders');
CREATE OR REPLACE FUNCTION mq.redrive_rows(
    p_name text,
    p_size bigint DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    affected := mq_internal.redrive_polled(p_name, NULL, coalesce(p_size, 1000));
END
$$;
