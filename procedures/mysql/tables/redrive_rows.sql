-- redrive_rows: retry dead rows of a polling table, with their attempts reset to 0.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried, those that died first
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked these rows
-- Example:     CALL mq_redrive_rows('orders', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive_rows(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    CALL imq_require_name('name', p_name, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_redrive_polled(p_name, NULL, COALESCE(p_size, 1000));
END
