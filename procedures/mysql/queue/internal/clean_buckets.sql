-- clean_buckets: clean up the token buckets of groups, and unblock stuck groups for some seconds after a change of limits.
-- Transaction: joins the caller's; skips groups that other claims have locked
--
-- A group without a bucket has all its tokens. A bucket whose full_at is more than one period ahead was written before the
-- clock was set back: its messages would wait too long for a token.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_clean_buckets(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6)
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The maximum number of groups: each stays locked until the claim commits.
    DECLARE c_buckets int DEFAULT 100;
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    DECLARE v_latest datetime(6);
    SELECT p_now + INTERVAL IF(group_limits, 86400, group_rate_seconds) SECOND INTO v_latest
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    -- Read without locks: usually there is none.
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(b.group_key)), ']') INTO v_groups
    FROM (
        (SELECT group_key FROM mq_bucket FORCE INDEX (bucket_full) WHERE type = p_type AND full_at <= p_now LIMIT c_buckets)
        UNION ALL
        (SELECT group_key FROM mq_bucket FORCE INDEX (bucket_full) WHERE type = p_type AND full_at > v_latest LIMIT c_buckets)
    ) AS b;
    IF v_groups IS NOT NULL THEN
        -- Only a session that has locked a group's stripe writes its bucket.
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(s.group_key)), ']') INTO v_groups
        FROM (
            SELECT j.group_key
            FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$')) AS j
            STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', j.group_key)) MOD 16384
            FOR UPDATE /*!80000 OF s */ SKIP LOCKED
        ) AS s;
    END IF;
    IF v_groups IS NOT NULL THEN
        DELETE b
        FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$')) AS j
        STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
        WHERE b.full_at <= p_now;
        UPDATE JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$')) AS j
        STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
        SET b.full_at = v_latest
        WHERE b.full_at > v_latest;
        IF ROW_COUNT() > 0 THEN
            CALL imq_hurry_groups(p_type);
        END IF;
    END IF;
END
