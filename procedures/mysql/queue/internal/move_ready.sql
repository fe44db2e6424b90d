-- move_ready: refuse a change of the positions of rows in mq_ready; the area ring replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_move_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_all tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_area('ring');
END
