-- list_rows: run a statement that lists rows of a polling table, again for fewer rows when the list is too long.
-- Arguments:   p_shape and p_template (for imq_run_template; {size} stands for the LIMIT; the statement sets @mq_n to the
--              count and @mq_found to the list), p_size
-- Returns:     p_list; NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_list_rows(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_template longtext CHARACTER SET utf8mb4, IN p_size bigint,
    OUT p_list longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_size bigint DEFAULT p_size;
    DECLARE v_nothing bigint;
    -- A text longer than max_allowed_packet becomes NULL: list fewer rows.
    listing: LOOP
        SET @mq_found = NULL, @mq_n = 0;
        CALL imq_run_template(p_shape, REPLACE(p_template, '{size}', v_size), v_nothing);
        SET p_list = @mq_found;
        IF p_list IS NOT NULL OR @mq_n = 0 THEN
            LEAVE listing;
        ELSEIF v_size = 1 THEN
            CALL imq_raise_error('unsuitable_table', 'a row is longer than max_allowed_packet: raise this setting');
        END IF;
        SET v_size = GREATEST(1, v_size DIV 8);
    END LOOP;
    SET @mq_found = NULL, @mq_n = NULL;
END
