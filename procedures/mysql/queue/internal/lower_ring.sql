-- lower_ring: lower the low-water mark of a ring when a message becomes ready below it.
-- Arguments:   p_type, p_id (the lowest id that became ready)

DROP PROCEDURE IF EXISTS imq_lower_ring;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lower_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_n, v_after bigint;
    DECLARE v_until, v_promoted_to datetime(6);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = NULL;
    SELECT n, after_id, low_until, promoted_to INTO v_n, v_after, v_until, v_promoted_to
    FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = '' ORDER BY n DESC, after_id DESC LIMIT 1;
    IF v_until > UTC_TIMESTAMP(6) AND p_id <= v_after THEN
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        INSERT INTO mq_ring (n, after_id, low_until, promoted_to, type, reader)
        VALUES (v_n + 2, p_id - 1, v_until, v_promoted_to, p_type, '');
    END IF;
END//

DELIMITER ;
