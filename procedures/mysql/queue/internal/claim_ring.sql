-- claim_ring: refuse a claim of a ring; the area ring replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_after_id bigint, IN p_places longtext CHARACTER SET utf8mb4, OUT p_items longtext CHARACTER SET utf8mb4,
    OUT p_low longtext CHARACTER SET utf8mb4, OUT p_front_moved tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_area('ring');
END
