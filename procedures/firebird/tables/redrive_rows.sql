-- redrive_rows: retry dead rows of a polling table, those that died first, with their attempts reset to 0.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried; repeat until it is 0
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, preferably READ COMMITTED NO WAIT; claims of the table wait for its end
-- Example:     SELECT * FROM mq_redrive_rows('orders');

CREATE OR ALTER PROCEDURE mq_redrive_rows (
    p_name mq_argument,
    p_size bigint = NULL
)
RETURNS (affected bigint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_redrive_polled(p_name, NULL, COALESCE(p_size, 1000)) RETURNING_VALUES affected;
    SUSPEND;
END
