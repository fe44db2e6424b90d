-- spend_groups: start the spent tokens of groups at the time when the lease of their messages begins.
-- Transaction: joins the caller's, which has locked the groups (take_group)
--
-- A claim of many groups takes time. If tokens counted from the time when each group was taken, the claim times could
-- exceed the rate.

DROP PROCEDURE IF EXISTS imq_spend_groups;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_spend_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_rate, v_rate_seconds int;
    DECLARE v_limits tinyint;
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    SELECT group_rate, group_rate_seconds, group_limits INTO v_rate, v_rate_seconds, v_limits
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_rate > 0 OR v_limits THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(k.group_key), ',', k.n, ']'), ']') INTO v_groups
        FROM (
            SELECT COALESCE(m.group_key, '') AS group_key, COUNT(*) AS n
            FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
            GROUP BY COALESCE(m.group_key, '')
        ) AS k;
        UPDATE JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[0]', n int PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
        LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON v_limits AND o.type = p_type AND o.group_key = j.group_key
        SET b.full_at = GREATEST(b.full_at, v_now + INTERVAL (j.n * COALESCE(o.rate_seconds, v_rate_seconds) * 1000000
            + COALESCE(o.rate, v_rate) - 1) DIV COALESCE(o.rate, v_rate) MICROSECOND)
        WHERE COALESCE(o.rate, v_rate) > 0;
    END IF;
END//

DELIMITER ;
