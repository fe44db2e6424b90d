-- save_position: refuse to save the position of a fair queue; the area ring replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_save_position(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_n bigint,
    IN p_after_id bigint, IN p_lane varchar(200) CHARACTER SET utf8mb4, IN p_from_n bigint, IN p_until_n bigint,
    IN p_from_id bigint, IN p_until_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_area('fair');
END
