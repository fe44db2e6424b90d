-- advance_sequence: reserve numbers of a named counter, without gaps.
-- Arguments:   p_name (1 to 200 characters), p_count (1 to 1,000,000,000; NULL: 1)
-- Returns:     first, last: the first and the last reserved number
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's and locks the counter until it ends; other calls wait, those in NO WAIT for two seconds,
--              and then fail with a lock conflict; a rollback gives the numbers back
-- Example:     SELECT * FROM mq_advance_sequence('invoice');

CREATE OR ALTER PROCEDURE mq_advance_sequence (
    p_name mq_argument,
    p_count bigint = NULL
)
RETURNS (first bigint, last bigint)
AS
DECLARE v_count bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_range('count', p_count, 1, 1000000000);
    v_count = COALESCE(p_count, 1);
    EXECUTE PROCEDURE imq_lock_row('counter', p_name, NULL) RETURNING_VALUES last;
    IF (last IS NULL) THEN
        EXECUTE PROCEDURE imq_add_number('counter', p_name, NULL, v_count);
    ELSE
        UPDATE mq_counter SET last_number = :last + :v_count WHERE name = :p_name;
    last = COALESCE(last, 0) + v_count;
    first = last - v_count + 1;
    SUSPEND;
END
