-- polled_settings: return a polling table's settings.
-- Returns:     p_table: a JSON object of the columns of mq_polled; NULL when there is no such polling table

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_polled_settings(
    IN p_name varchar(200) CHARACTER SET utf8mb4, OUT p_table longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT JSON_OBJECT('name', CONVERT(name USING utf8mb4), 'schema',
        CONVERT(IF(table_schema = '', DATABASE(), table_schema) USING utf8mb4),
        'table', CONVERT(table_name USING utf8mb4), 'label',
            CONVERT(CONCAT(table_schema, IF(table_schema = '', '', '.'), table_name) USING utf8mb4),
        'ident_columns', CONVERT(ident_columns USING utf8mb4), 'keys', CONVERT(key_columns USING utf8mb4), 'order',
            CONVERT(order_column USING utf8mb4),
        'status', CONVERT(status_column USING utf8mb4), 'ready', CONVERT(ready_value USING utf8mb4), 'active',
            CONVERT(active_value USING utf8mb4),
        'done', CONVERT(done_value USING utf8mb4), 'error', CONVERT(error_value USING utf8mb4), 'deletes',
            IF(on_complete = 'delete', 1, 0),
        'late', late_seconds, 'max', max_attempts, 'key_index', CONVERT(key_index USING utf8mb4), 'claim_index',
            CONVERT(claim_index USING utf8mb4))
    INTO p_table
    FROM mq_polled WHERE name = p_name;
END
