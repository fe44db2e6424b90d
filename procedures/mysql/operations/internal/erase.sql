-- erase: delete messages that no consumer holds, or whose attempt the caller has ended.
-- Arguments:   p_type, p_ids (messages of that type: a JSON array of [id]), p_states (to delete from: N, E or NE; A: the caller has
--              ended the attempt of each)
-- Returns:     p_count: the number of deleted messages; messages that are held or are being claimed at this moment stay
-- Transaction: joins the caller's; never waits for a claim

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_erase(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_ids longtext CHARACTER SET utf8mb4,
    IN p_states varchar(2) CHARACTER SET ascii, OUT p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_grouped tinyint;
    DECLARE v_places, v_found, v_gone, v_groups longtext CHARACTER SET utf8mb4;
    SELECT grouped INTO v_grouped FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    SELECT CONCAT('[', GROUP_CONCAT('[', m.id, ',', m.priority, ',"', m.run_at, '",',
        JSON_QUOTE(COALESCE(m.group_key, '')), ']'), ']')
    INTO v_places
    FROM JSON_TABLE(p_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;

    IF p_states LIKE '%N%' AND v_places IS NOT NULL THEN
        CALL imq_erase_new(p_type, v_grouped, v_places, v_gone);
    END IF;
    IF p_states LIKE '%E%' THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']'), CONCAT_WS(',', v_gone, GROUP_CONCAT('[', k.id, ']'))
        INTO v_found, v_gone
        FROM (
            SELECT e.id
            FROM JSON_TABLE(p_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            LIMIT 10000 FOR UPDATE /*!80000 OF e */ SKIP LOCKED
        ) AS k;
        IF v_found IS NOT NULL THEN
            DELETE e FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
            -- Before the lock on the dead letters, set_queue may have let them stop their groups.
            SELECT grouped INTO v_grouped FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
        END IF;
    END IF;

    SET v_gone = IF(p_states = 'A', p_ids, CONCAT('[', NULLIF(v_gone, ''), ']'));
    SET p_count = COALESCE(JSON_LENGTH(v_gone), 0);
    IF p_count > 0 THEN
        IF v_grouped THEN
            SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']') INTO v_groups
            FROM (
                SELECT DISTINCT COALESCE(m.group_key, '') AS group_key
                FROM JSON_TABLE(v_gone, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
            ) AS k;
            -- The deleted message may have been a group's first message in a retry delay, a dead letter that stopped its
            -- group, or the one with its group's ticket.
            CALL imq_free_groups(p_type, v_gone);
            CALL imq_issue_tickets(p_type, v_groups);
        END IF;
        CALL imq_delete_results(v_gone);
        CALL imq_delete_messages(v_gone);
        CALL imq_move_steps(v_gone, NULL);
    END IF;
END
