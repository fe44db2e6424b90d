-- take_groups: take messages from the groups of the given tickets, as many as the limits per group allow.
-- Arguments:   p_type, p_size (maximum number of messages), p_take (see pick_grouped), p_tickets and p_lone (from
--              read_tickets), p_rate, p_rate_seconds and p_limits (the policy)
-- Returns:     p_items: '[id,number of this attempt],...'; p_groups: keys of the groups with taken messages, JSON strings
--              separated by commas; p_used: '[id,priority,run_at],...' of the used tickets; each NULL for none. p_count:
--              number of messages; p_last: number of tickets that were tried
-- Transaction: joins the caller's, which keeps the stripes of the groups locked until it ends; never waits
--
-- One group after the other: no group is locked that gives no message. Groups without a token are delayed all at once
-- before.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_take tinyint,
    IN p_tickets longtext CHARACTER SET utf8mb4, IN p_lone int, IN p_rate int, IN p_rate_seconds int,
    IN p_limits tinyint, OUT p_items longtext CHARACTER SET utf8mb4, OUT p_groups longtext CHARACTER SET utf8mb4,
    OUT p_used longtext CHARACTER SET utf8mb4, OUT p_count int, OUT p_last int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The maximum number of groups per call: each stays locked until the commit.
    DECLARE c_groups int DEFAULT 250;
    DECLARE i, v_count, v_given int DEFAULT 0;
    DECLARE v_put_off tinyint;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_group varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
    DECLARE v_found, v_empty, v_lone, v_items, v_done longtext CHARACTER SET utf8mb4;
    SET p_items = NULL, p_groups = NULL, p_used = NULL, p_count = 0, p_last = JSON_LENGTH(p_tickets);
    SELECT CONCAT('[', GROUP_CONCAT(IF(b.type IS NULL, CONCAT('[', j.n, ',', JSON_QUOTE(j.group_key), ']'), NULL) ORDER BY j.n), ']'),
        CONCAT('[', GROUP_CONCAT(IF(b.type IS NULL, NULL, JSON_QUOTE(j.group_key))), ']')
    INTO v_found, v_empty
    FROM JSON_TABLE(p_tickets, '$[*]' COLUMNS (
        n FOR ORDINALITY, what int PATH '$[3]', nth int PATH '$[4]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]'
    )) AS j
    LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON p_limits AND o.type = p_type AND o.group_key = j.group_key
    LEFT JOIN mq_bucket AS b FORCE INDEX (PRIMARY)
        ON b.type = p_type AND b.group_key = j.group_key AND p_lone = 0 AND NOT p_take
        AND b.full_at > v_now + INTERVAL COALESCE(o.rate_seconds, p_rate_seconds) SECOND
            - INTERVAL (COALESCE(o.rate_seconds, p_rate_seconds) * 1000000 + COALESCE(o.rate, p_rate) - 1)
                DIV NULLIF(COALESCE(o.rate, p_rate), 0) MICROSECOND
    WHERE j.what >= 2 AND j.nth = 1;
    IF v_empty IS NOT NULL THEN
        CALL imq_put_off(p_type, v_empty, v_done);
    END IF;
    taking: WHILE i < COALESCE(JSON_LENGTH(v_found), 0) DO
        IF p_count = p_size OR v_given = c_groups THEN
            -- The tickets after the last group were not tried.
            SET p_last = JSON_EXTRACT(v_found, CONCAT('$[', i, '][0]')) - 1;
            LEAVE taking;
        END IF;
        SET v_group = JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', i, '][1]'))), i = i + 1, v_lone = NULL;
        IF p_lone > 0 THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', j.id, ']'), ']') INTO v_lone
            FROM JSON_TABLE(p_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', what int PATH '$[3]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]'
            )) AS j
            WHERE j.what = 3 AND j.group_key = v_group;
        END IF;
        CALL imq_take_group(p_type, v_group, p_size - p_count, p_take, v_lone, v_items, v_count, v_put_off);
        IF v_count > 0 THEN
            SET p_items = CONCAT_WS(',', p_items, v_items), p_groups = CONCAT_WS(',', p_groups, JSON_QUOTE(v_group)),
                p_count = p_count + v_count, v_given = v_given + 1;
        END IF;
        IF v_count > 0 OR v_put_off THEN
            SET v_done = CONCAT_WS(',', v_done, JSON_QUOTE(v_group));
        END IF;
    END WHILE;
    IF v_done IS NOT NULL THEN
        -- A take drops only the tickets that it used: others must not be hidden until its handler ends.
        SELECT GROUP_CONCAT('[', j.id, ',', j.priority, ',"', j.run_at, '",', JSON_QUOTE(j.lane), ']') INTO p_used
        FROM JSON_TABLE(CONCAT('[', v_done, ']'), '$[*]' COLUMNS (
            group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
        )) AS d
        STRAIGHT_JOIN JSON_TABLE(p_tickets, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', what int PATH '$[3]',
            nth int PATH '$[4]',
            group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]',
            lane varchar(200) CHARACTER SET utf8mb4 PATH '$[6]'
        )) AS j ON j.group_key = d.group_key
        WHERE j.what >= 2 AND (NOT p_take OR j.nth = 1);
    END IF;
END
