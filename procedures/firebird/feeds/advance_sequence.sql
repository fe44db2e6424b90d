-- advance_sequence: reserve numbers of a named counter, without gaps.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 1,000,000,000; NULL: 1)
-- Returns:     first_number, last_number: the first and the last reserved number
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's and locks the counter until it ends; other calls wait, those in NO WAIT for two seconds,
--              and then fail with a lock conflict; a rollback gives the numbers back
-- Example:     SELECT * FROM mq_advance_sequence('invoice');

CREATE OR ALTER PROCEDURE mq_advance_sequence (
    p_name mq_argument,
    p_size bigint = NULL
)
RETURNS (first_number bigint, last_number bigint)
AS
DECLARE v_size bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 1000000000);
    v_size = COALESCE(p_size, 1);
    EXECUTE PROCEDURE imq_lock_row('counter', p_name, NULL) RETURNING_VALUES last_number;
    IF (last_number IS NULL) THEN
        EXECUTE PROCEDURE imq_add_number('counter', p_name, NULL, v_size);
    ELSE
        UPDATE mq_counter SET last_number = :last_number + :v_size WHERE name = :p_name;
    last_number = COALESCE(last_number, 0) + v_size;
    first_number = last_number - v_size + 1;
    SUSPEND;
END
