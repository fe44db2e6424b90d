-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments:   p_lease_seconds (NULL: the queue's), p_after_id (of a ring; see claim_ring)
-- Returns:     the messages; p_claimed: 1, or 0 when there are none, and then it returns no result set

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_lease_seconds int, IN p_after_id bigint, OUT p_claimed tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_paused, v_grouped, v_fair, v_ring, v_limits tinyint;
    DECLARE v_most, v_seconds, v_max_active, v_rate, v_rate_seconds, v_group_rate, v_group_seconds int;
    DECLARE v_size int DEFAULT p_size;
    DECLARE v_items, v_groups longtext CHARACTER SET utf8mb4;
    DECLARE v_now datetime(6);
    SELECT paused, grouped, fair, ring, COALESCE(p_lease_seconds, lease_seconds), max_active, rate, rate_seconds, group_limits,
        group_rate, group_rate_seconds, max_attempts
    INTO v_paused, v_grouped, v_fair, v_ring, v_seconds, v_max_active, v_rate, v_rate_seconds, v_limits, v_group_rate,
        v_group_seconds, v_most
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL imq_allowance(p_type, p_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        CALL imq_pick(p_type, v_grouped, v_fair, v_size, 0, IF(v_ring, p_consumer, NULL), p_after_id, v_items);
    END IF;
    SET p_claimed = v_items IS NOT NULL;
    IF p_claimed THEN
        CALL imq_hold(p_type, v_items, p_consumer, v_seconds, v_most);
        IF v_max_active + v_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
        IF v_grouped AND (v_group_rate > 0 OR v_limits) THEN
            -- The groups' tokens are spent from now on, when the lease begins. A claim of many groups takes time: counted
            -- from the time when each group was taken, the claims could exceed the rate.
            SET v_now = UTC_TIMESTAMP(6);
            SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(k.group_key), ',', k.n, ']'), ']') INTO v_groups
            FROM (
                SELECT COALESCE(m.group_key, '') AS group_key, COUNT(*) AS n
                FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
                GROUP BY COALESCE(m.group_key, '')
            ) AS k;
            UPDATE JSON_TABLE(v_groups, '$[*]' COLUMNS (
                group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[0]', n int PATH '$[1]'
            )) AS j
            STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
            LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON v_limits AND o.type = p_type AND o.group_key = j.group_key
            SET b.full_at = GREATEST(b.full_at, v_now + INTERVAL (j.n * COALESCE(o.rate_seconds, v_group_seconds) * 1000000
                + COALESCE(o.rate, v_group_rate) - 1) DIV COALESCE(o.rate, v_group_rate) MICROSECOND)
            WHERE COALESCE(o.rate, v_group_rate) > 0;
        END IF;
    END IF;
END
