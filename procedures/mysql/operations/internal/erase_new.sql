-- erase_new: delete messages of state N that no consumer holds from the tables of their state.
-- Arguments:   p_type, p_grouped (of the policy), p_places (a JSON array of
--              [id, priority, run_at, group key] of the messages)
-- Returns:     p_gone: '[id],...' of the deleted messages; NULL: none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_erase_new(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_grouped tinyint, IN p_places longtext CHARACTER SET utf8mb4,
    OUT p_gone longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    -- The delayed table first, because a claim may be promoting messages from it.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',"', k.run_at, '"]'), ']'), GROUP_CONCAT('[', k.id, ']')
    INTO v_found, p_gone
    FROM (
        SELECT d.id, d.run_at
        FROM JSON_TABLE(p_places, '$[*]' COLUMNS (id bigint PATH '$[0]', run_at datetime(6) PATH '$[2]')) AS j
        STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = j.run_at AND d.id = j.id
        LIMIT 10000 FOR UPDATE /*!80000 OF d */ SKIP LOCKED
    ) AS k;
    IF v_found IS NOT NULL THEN
        DELETE d FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]', run_at datetime(6) PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = j.run_at AND d.id = j.id;
    END IF;

    SET v_found = p_places;
    IF p_grouped THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.group_key), ']'), ']'),
            CONCAT_WS(',', p_gone, GROUP_CONCAT('[', k.id, ']'))
        INTO v_found, p_gone
        FROM (
            SELECT g.id, j.priority, j.run_at, g.group_key
            FROM JSON_TABLE(p_places, '$[*]' COLUMNS (id bigint PATH '$[0]', priority smallint PATH '$[1]',
                run_at datetime(6) PATH '$[2]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[3]')) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
            LIMIT 10000 FOR UPDATE /*!80000 OF g */ SKIP LOCKED
        ) AS k;
        IF v_found IS NOT NULL THEN
            DELETE g FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]',
                group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[3]')) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id;
        END IF;
    END IF;
    -- In a queue with groups, delete only the tickets of messages that are already deleted. A row is at the message's own
    -- position, in its lane, or in the ring: see leave_place.
    IF v_found IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',0,', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']'), ']'),
            IF(p_grouped, p_gone, CONCAT_WS(',', p_gone, GROUP_CONCAT('[', k.id, ']')))
        INTO v_found, p_gone
        FROM (
            SELECT r.id, r.priority, r.run_at, r.lane
            FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]', priority smallint PATH '$[1]',
                run_at datetime(6) PATH '$[2]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[3]')) AS j
            STRAIGHT_JOIN JSON_TABLE('[0,1,2]', '$[*]' COLUMNS (place tinyint PATH '$')) AS p
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = IF(p.place = 2, -32768, j.priority)
                AND r.lane = IF(p.place = 1, j.group_key, '')
                AND r.run_at = IF(p.place > 0, CAST('1000-01-01' AS datetime(6)), j.run_at) AND r.id = j.id
            WHERE p.place < 2 OR j.priority > -32768 OR j.group_key <> ''
            LIMIT 30000 FOR UPDATE /*!80000 OF r */ SKIP LOCKED
        ) AS k;
    END IF;
    IF v_found IS NOT NULL THEN
        CALL imq_delete_ready(p_type, v_found);
    END IF;
    SET p_gone = NULLIF(p_gone, '');
END
