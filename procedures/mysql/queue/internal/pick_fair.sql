-- pick_fair: refuse a claim of a fair queue; the area fair replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_fair(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_area('fair');
END
