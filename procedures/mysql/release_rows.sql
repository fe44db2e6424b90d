-- release_rows: give claimed rows back without costing an attempt.
-- Arguments:   p_batch_key
-- Returns:     count of rows given back (0: the batch was lost)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for others that have locked these rows
-- Example:     CALL mq_release_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

DROP PROCEDURE IF EXISTS mq_release_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_release_rows(
    IN p_batch_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_shape, v_ids longtext CHARACTER SET utf8mb4;
    DECLARE v_count, v_dead, v_gone bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL mq_require_key(p_batch_key);
    CALL mq_begin_call(1, v_own);
    CALL mq_drop_polled_batch(p_batch_key, v_name, v_ids);
    IF v_ids IS NOT NULL THEN
        CALL mq_polled_shape(v_name, v_shape);
        CALL mq_fail_rows(v_name, v_shape, CONCAT('[[', REPLACE(SUBSTRING(v_ids, 2, CHAR_LENGTH(v_ids) - 2), ',', ',-2,null],['),
            ',-2,null]]'), v_count, v_dead, v_gone);
    END IF;
    SELECT v_count AS count;
    CALL mq_end_call(v_own);
END//

DELIMITER ;
