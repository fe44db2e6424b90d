-- promote: move due messages from mq_delayed to mq_ready.
-- Arguments:   p_type, p_after and p_until (due after p_after and up to p_until), p_size (maximum number of messages)
-- Returns:     p_moved: number of messages; p_first_run_at: their earliest run_at in mq_ready, or NULL

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_promote(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_after datetime(6), IN p_until datetime(6), IN p_size int,
    OUT p_moved bigint, OUT p_first_run_at datetime(6)
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_due, v_groups longtext CHARACTER SET utf8mb4;
    DECLARE v_grouped, v_ring, v_fair tinyint;
    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    SELECT CONCAT('[', GROUP_CONCAT('[', d.id, ',', d.attempts, ',', d.priority, ',"', d.run_at, '"]'), ']'), COUNT(*),
        -- All messages of a ring are at its start.
        MIN(IF(v_ring, '1000-01-01', d.run_at))
    INTO v_due, p_moved, p_first_run_at
    FROM (
        SELECT id, attempts, priority, run_at
        FROM mq_delayed FORCE INDEX (PRIMARY)
        WHERE type = p_type AND run_at > p_after AND run_at <= p_until
        ORDER BY run_at, id
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    ) AS d;
    IF p_moved > 0 THEN
        DELETE d
        FROM JSON_TABLE(v_due, '$[*]' COLUMNS (id bigint PATH '$[0]', run_at datetime(6) PATH '$[3]')) AS j
        STRAIGHT_JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = j.run_at AND d.id = j.id;
        IF v_grouped THEN
            INSERT IGNORE INTO mq_grouped (type, group_key, id, attempts)
            SELECT m.type, COALESCE(m.group_key, ''), m.id, j.attempts
            FROM JSON_TABLE(v_due, '$[*]' COLUMNS (id bigint PATH '$[0]', attempts smallint PATH '$[1]')) AS j
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;
            -- A message that blocked its group returns: unblock the group; the message is its first one again.
            CALL imq_drop_locks(p_type, v_due, v_groups);
        END IF;
        INSERT IGNORE INTO mq_ready (type, priority, lane, run_at, id, attempts)
        SELECT p_type, IF(v_ring, -32768, j.priority), IF(v_fair, COALESCE(m.group_key, ''), ''),
            IF(v_ring OR v_fair AND NOT v_grouped, '1000-01-01', j.run_at), j.id, j.attempts
        FROM JSON_TABLE(v_due, '$[*]' COLUMNS (
            id bigint PATH '$[0]', attempts smallint PATH '$[1]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]'
        )) AS j
        LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON v_fair AND m.id = j.id;
    END IF;
END
