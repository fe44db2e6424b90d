-- hurry_groups: after limits per group or the clock were changed, make messages due that wait for a token.
-- Transaction: joins the caller's; skips messages that others have locked
--
-- The next claim delays them again if there is still no token. Groups with active messages need nothing: if they have more
-- messages, one of these has a ticket (see pick_grouped).

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_hurry_groups(IN p_type varchar(200) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_waiting longtext CHARACTER SET utf8mb4;
    SELECT CONCAT('[', GROUP_CONCAT('[', d.id, ',"', d.run_at, '"]'), ']') INTO v_waiting
    FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = l.id
    STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = m.run_at AND d.id = m.id
    WHERE l.type = p_type AND l.place <= 0 AND d.run_at > v_now AND d.error IS NULL;
    IF v_waiting IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',', k.attempts, ',"', k.run_at, '"]'), ']') INTO v_waiting
        FROM (
            SELECT d.id, d.priority, d.attempts, d.run_at
            FROM JSON_TABLE(v_waiting, '$[*]' COLUMNS (id bigint PATH '$[0]', run_at datetime(6) PATH '$[1]')) AS j
            STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = j.run_at AND d.id = j.id
            FOR UPDATE /*!80000 OF d */ SKIP LOCKED
        ) AS k;
    END IF;
    IF v_waiting IS NOT NULL THEN
        DELETE d
        FROM JSON_TABLE(v_waiting, '$[*]' COLUMNS (id bigint PATH '$[0]', run_at datetime(6) PATH '$[3]')) AS j
        STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = j.run_at AND d.id = j.id;
        UPDATE JSON_TABLE(v_waiting, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        SET m.run_at = v_now;
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        SELECT p_type, v_now, j.id, j.priority, j.attempts
        FROM JSON_TABLE(v_waiting, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[1]', attempts smallint PATH '$[2]'
        )) AS j;
    END IF;
    -- Groups may have more places now, and claims have passed their tickets.
    CALL imq_lower_mark(p_type);
END
