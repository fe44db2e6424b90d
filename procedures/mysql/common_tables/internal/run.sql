-- run: execute a statement with the rights of the caller.
-- Returns:     p_count: rows changed; a SELECT ... INTO @mq_found stores its value in that variable

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_run(
    IN p_statement longtext CHARACTER SET utf8mb4, OUT p_count bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    SET @mq_statement = p_statement;
    PREPARE mq_statement FROM @mq_statement;
    EXECUTE mq_statement;
    SET p_count = ROW_COUNT();
    DEALLOCATE PREPARE mq_statement;
    SET @mq_statement = NULL;
END
