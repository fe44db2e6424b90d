-- list_rows: execute a statement that lists rows, for fewer rows when they are too long together.
-- Arguments:   p_head (up to its LIMIT; it puts the count into @mq_n and the list into @mq_found), p_size, p_tail (behind the LIMIT)
-- Returns:     p_list, NULL for none
-- Errors:      50006 unsuitable_table, when one row is longer than max_allowed_packet
-- Transaction: joins the caller's
-- Example:     CALL mq_list_rows('SELECT ... ORDER BY id', 100, ') AS r', v_list);

DROP PROCEDURE IF EXISTS mq_list_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_rows(
    IN p_head longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_tail longtext CHARACTER SET utf8mb4,
    OUT p_list longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_size bigint DEFAULT p_size;
    DECLARE v_nothing bigint;
    -- A text that is longer than max_allowed_packet becomes NULL.
    listing: LOOP
        SET @mq_found = NULL, @mq_n = 0;
        CALL mq_run(CONCAT(p_head, ' LIMIT ', v_size, p_tail), v_nothing);
        SET p_list = @mq_found;
        IF p_list IS NOT NULL OR @mq_n = 0 THEN
            LEAVE listing;
        ELSEIF v_size = 1 THEN
            CALL mq_raise_error('unsuitable_table', 'a row is longer than max_allowed_packet');
        END IF;
        SET v_size = GREATEST(1, v_size DIV 8);
    END LOOP;
    SET @mq_found = NULL, @mq_n = NULL;
END//

DELIMITER ;
