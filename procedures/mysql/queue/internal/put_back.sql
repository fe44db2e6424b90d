-- put_back: make messages ready again, at the position where they were sent; delete those that were cancelled.
-- Arguments:   p_type, p_items (a JSON array of [id, attempts])

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_put_back(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_grouped, v_ring, v_fair, v_moved tinyint;
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    CALL imq_drop_cancelled(p_type, p_items);
    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    -- Read first, without locks: few messages have ever failed.
    SELECT EXISTS (
        SELECT *
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        WHERE m.sent_run_at IS NOT NULL
    ) INTO v_moved;
    IF v_moved THEN
        UPDATE JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        SET m.run_at = m.sent_run_at
        WHERE m.sent_run_at IS NOT NULL;
    END IF;
    IF v_grouped THEN
        INSERT IGNORE INTO mq_grouped (type, group_key, id, attempts)
        SELECT m.type, COALESCE(m.group_key, ''), m.id, j.attempts
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempts smallint PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;
        CALL imq_drop_locks(p_type, p_items, v_groups);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']') INTO v_groups
        FROM (
            SELECT DISTINCT COALESCE(m.group_key, '') AS group_key
            FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        ) AS k;
        CALL imq_issue_tickets(p_type, v_groups);
    ELSE
        INSERT INTO mq_ready (type, priority, lane, run_at, id, attempts)
        SELECT m.type, IF(v_ring, -32768, m.priority), IF(v_fair, COALESCE(m.group_key, ''), ''),
            IF(v_ring OR v_fair, '1000-01-01', m.run_at), m.id, j.attempts
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempts smallint PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;
        CALL imq_lower_mark(p_type);
    END IF;
END
