-- require_order: refuse an order column that claims cannot continue from.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_order(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_column varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_count int;
    SELECT COUNT(*) INTO v_count
    FROM information_schema.columns AS c
    WHERE c.table_schema = p_schema AND c.table_name = p_table AND c.column_name = p_column AND c.is_nullable = 'NO'
        AND c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'double', 'year', 'char', 'varchar',
            'date', 'datetime', 'timestamp', 'time');
    IF v_count = 0 THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('order_column: ', LEFT(p_column, 40),
            ' must be NOT NULL, and a number, a text or a time'));
    END IF;
END
