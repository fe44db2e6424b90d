-- rescue_expired: make the messages of expired claims ready again, or dead-letter them when their attempts are used up;
--                 also unblock the stuck groups that queue_health reports.
-- Arguments:   p_type (NULL: all types)
-- Returns:     affected: messages made ready or dead-lettered; a call rescues at most 1,000 claims per type
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips claims that another call is finishing or extending
-- Example:     CALL mq_rescue_expired('email');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_rescue_expired(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_stuck, v_groups longtext CHARACTER SET utf8mb4;
    DECLARE v_count, v_rescued bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 1);
    CALL imq_begin_call(1, v_own);
    SELECT COALESCE(p_type, MIN(type)) INTO v_type FROM mq_batch FORCE INDEX (batch_lease);
    WHILE v_type IS NOT NULL DO
        CALL imq_rescue(v_type, 1000, v_rescued);
        SET v_count = v_count + v_rescued;
        SELECT MIN(type) INTO v_type FROM mq_batch FORCE INDEX (batch_lease) WHERE p_type IS NULL AND type > v_type;
    END WHILE;
    CALL imq_stuck_groups(p_type, v_stuck);
    WHILE v_stuck IS NOT NULL DO
        SET v_type = JSON_UNQUOTE(JSON_EXTRACT(v_stuck, '$[0][0]'));
        SELECT CONCAT('[', GROUP_CONCAT(IF(CAST(j.type AS binary) = CAST(v_type AS binary), JSON_QUOTE(j.group_key), NULL)), ']'),
            CONCAT('[', GROUP_CONCAT(IF(CAST(j.type AS binary) = CAST(v_type AS binary), NULL, JSON_ARRAY(j.type, j.group_key))), ']')
        INTO v_groups, v_stuck
        FROM JSON_TABLE(v_stuck, '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
            group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[1]')) AS j;
        CALL imq_issue_tickets(v_type, v_groups);
    END WHILE;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
