-- redrive_row: retry one dead row of a polling table, with its attempts reset to 0.
-- Arguments:   p_name (1 to 200 characters), p_id (of the row, as peek_rows lists it)
-- Returns:     affected: 1; 0 when there is no such dead row
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked the row
-- Example:     CALL mq_redrive_row('orders', 17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive_row(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_id bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    CALL imq_require_name('name', p_name, 0);
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL; redrive_rows retries all dead rows');
    END IF;
    CALL imq_redrive_polled(p_name, p_id, 1);
END
