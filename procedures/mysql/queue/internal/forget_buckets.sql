-- forget_buckets: delete the buckets of groups that are full again: a group without one has all its tokens.
-- Arguments:   p_type, p_now
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; passes over groups that other claims have locked
-- Example:     CALL mq_forget_buckets('email', UTC_TIMESTAMP(6));

DROP PROCEDURE IF EXISTS mq_forget_buckets;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_forget_buckets(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_now datetime(6)
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- So many groups at most are locked until the claim's commit.
    DECLARE c_buckets int DEFAULT 100;
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    -- Without a lock: most of the time there is none.
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(b.group_key)), ']') INTO v_groups
    FROM (
        SELECT group_key FROM mq_bucket FORCE INDEX (bucket_full) WHERE type = p_type AND full_at <= p_now LIMIT c_buckets
    ) AS b;
    IF v_groups IS NOT NULL THEN
        -- Only who has a group's stripe writes its bucket.
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(s.group_key)), ']') INTO v_groups
        FROM (
            SELECT j.group_key
            FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', j.group_key)) MOD 16384
            LIMIT c_buckets
            FOR UPDATE /*!80000 OF s */ SKIP LOCKED
        ) AS s;
    END IF;
    IF v_groups IS NOT NULL THEN
        DELETE b
        FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
        WHERE b.full_at <= p_now;
    END IF;
END//

DELIMITER ;
