-- advance_sequence: reserve numbers of a named counter, without gaps.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 1,000,000,000; NULL: 1)
-- Returns:     first_number, last_number: the first and the last reserved number
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's and locks the counter until it ends; other calls wait; a rollback gives the numbers back
-- Example:     SELECT * FROM mq.advance_sequence('invoice');
CREATE OR REPLACE FUNCTION mq.advance_sequence(
    p_name text,
    p_size bigint DEFAULT NULL,
    OUT first_number bigint,
    OUT last_number bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 1000000000);
    INSERT INTO mq.counter AS c (name, last_number)
    VALUES (p_name, coalesce(p_size, 1))
    ON CONFLICT (name) DO UPDATE SET last_number = c.last_number + excluded.last_number
    RETURNING c.last_number INTO last_number;
    first_number := last_number - coalesce(p_size, 1) + 1;
END
$$;
