-- issue_tickets: write tickets for groups of a grouped queue that have due messages and are not blocked.
-- Arguments:   p_type, p_groups (a JSON array of group keys, '' for none, each once)
--
-- The first message of a group may be one that another transaction is cancelling. So the first message gets a ticket, and
-- also the first message that no transaction is deleting. An extra ticket does no harm. The ticket is new even if the
-- message has one at its own position: a claim that saw the group blocked may be dropping that one. In a cluster that claim
-- may run on another node, whose locks are not visible here. The claim cannot have seen the new ticket: its run_at is up to
-- 0.1 ms before the message's, at a random time where no other transaction inserts or deletes. A ticket that would come
-- before the mark of its priority comes after it: claims start there, and what they have passed was blocked.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_issue_tickets(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_groups longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_id bigint;
    DECLARE v_group varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_heads, v_free, v_hidden, v_new, v_marks longtext CHARACTER SET utf8mb4;
    DECLARE i int DEFAULT 0;
    DECLARE v_fair tinyint;
    SELECT CONCAT('[', GROUP_CONCAT('[', g.id, ',', JSON_QUOTE(g.group_key), ']'), ']') INTO v_heads
    FROM JSON_TABLE(p_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$')) AS j
    STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
        ON g.type = p_type AND g.group_key = j.group_key AND g.id = (
            SELECT f.id FROM mq_grouped AS f FORCE INDEX (PRIMARY)
            WHERE f.type = p_type AND f.group_key = j.group_key
            ORDER BY f.id
            LIMIT 1
        );
    IF v_heads IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT(h.id), ']') INTO v_free
        FROM (
            SELECT g.id
            FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[1]'
            )) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
            LIMIT 10000
            FOR UPDATE /*!80000 OF g */ SKIP LOCKED
        ) AS h;
        IF COALESCE(JSON_LENGTH(v_free), 0) < JSON_LENGTH(v_heads) THEN
            SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(j.group_key)), ']') INTO v_hidden
            FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[1]'
            )) AS j
            LEFT JOIN JSON_TABLE(COALESCE(v_free, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS f ON f.id = j.id
            WHERE f.id IS NULL;
            WHILE i < JSON_LENGTH(v_hidden) DO
                SET v_group = JSON_UNQUOTE(JSON_EXTRACT(v_hidden, CONCAT('$[', i, ']')));
                SELECT MAX(g.id) INTO v_id
                FROM (
                    SELECT id
                    FROM mq_grouped FORCE INDEX (PRIMARY)
                    WHERE type = p_type AND group_key = v_group
                    ORDER BY id
                    LIMIT 1
                    FOR UPDATE SKIP LOCKED
                ) AS g;
                IF v_id IS NOT NULL THEN
                    SET v_heads = JSON_ARRAY_APPEND(v_heads, '$', JSON_ARRAY(v_id, v_group));
                END IF;
                SET i = i + 1;
            END WHILE;
        END IF;

        SELECT CONCAT('[', GROUP_CONCAT('[', m.id, ',', m.priority, ',"', m.run_at, '",', g.attempts, ',', JSON_QUOTE(g.group_key), ']'), ']')
        INTO v_new
        FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[1]'
        )) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
            ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id;
        IF v_new IS NOT NULL THEN
            SELECT fair, (SELECT places FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type ORDER BY n DESC LIMIT 1) INTO v_fair, v_marks
            FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
            INSERT IGNORE INTO mq_ready (type, priority, lane, run_at, id, attempts)
            SELECT p_type, j.priority, IF(v_fair, j.group_key, ''), IF(k.run_at >= j.run_at - INTERVAL 100 MICROSECOND AND NOT v_fair,
                k.run_at + INTERVAL 1 + FLOOR(97 * RAND()) MICROSECOND, j.run_at - INTERVAL 1 + FLOOR(97 * RAND()) MICROSECOND), j.id, j.attempts
            FROM JSON_TABLE(v_new, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                attempts smallint PATH '$[3]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[4]'
            )) AS j
            LEFT JOIN JSON_TABLE(COALESCE(v_marks, '[]'), '$[*]' COLUMNS (
                priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]'
            )) AS k ON k.priority = j.priority;
        END IF;
    END IF;
END
