-- count_active: count the entries whose rows are at active_value, and store the time of this count.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_count_active(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, OUT p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    SELECT name INTO v_name FROM mq_polled_batch WHERE batch_key = p_batch_key;
    SELECT COUNT(*) INTO p_count FROM mq_polled_row WHERE name = v_name AND state IN ('A', 'N') AND active = 1;
    UPDATE mq_polled SET counted_at = v_now WHERE name = v_name;
END
