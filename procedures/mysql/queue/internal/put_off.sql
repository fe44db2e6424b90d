-- put_off: delay the first message of a group until the group's next token.
-- Arguments:   p_type, p_group, p_ordered (1: delay exactly the first message; 0: the first one that no session has
--              locked), p_rate and p_rate_seconds (the policy that the claim has read), p_next_at (the time of the token)
-- Returns:     p_done: 1; 0 when nothing was done, because another transaction is cancelling the message or has changed the
--              policy
-- Errors:      none
-- Transaction: joins the caller's, which has locked the group's stripe and commits soon; never waits. set_queue waits for
--              it
-- Example:     CALL mq_put_off('email', 'customer-7', 0, 100, 60, v_next_at, v_done);
--
-- The message waits like a failed message of an ordered queue: promote brings it back and frees its place.

DROP PROCEDURE IF EXISTS mq_put_off;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_put_off(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_group varchar(200) CHARACTER SET utf8mb4,
    IN p_ordered tinyint,
    IN p_rate int,
    IN p_rate_seconds int,
    IN p_next_at datetime(6),
    OUT p_done tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_same tinyint;
    DECLARE v_first, v_id bigint;
    DECLARE v_attempts smallint;
    -- A policy change that commits after this finds the delayed message and makes it due.
    SELECT MAX(q.group_rate = p_rate AND q.group_rate_seconds = p_rate_seconds) INTO v_same
    FROM (
        SELECT group_rate, group_rate_seconds FROM mq_queue WHERE type = p_type
        /*!80000 FOR SHARE SKIP LOCKED */ /*M! LOCK IN SHARE MODE SKIP LOCKED */
    ) AS q;
    IF v_same AND p_ordered THEN
        SELECT MIN(g.id) INTO v_first FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type AND g.group_key = p_group;
        SELECT MAX(g.id), MAX(g.attempts) INTO v_id, v_attempts
        FROM (
            SELECT id, attempts FROM mq_grouped FORCE INDEX (PRIMARY)
            WHERE type = p_type AND group_key = p_group AND id = v_first
            FOR UPDATE SKIP LOCKED
        ) AS g;
    ELSEIF v_same THEN
        SELECT MAX(g.id), MAX(g.attempts) INTO v_id, v_attempts
        FROM (
            SELECT id, attempts FROM mq_grouped FORCE INDEX (PRIMARY)
            WHERE type = p_type AND group_key = p_group
            ORDER BY id
            LIMIT 1
            FOR UPDATE SKIP LOCKED
        ) AS g;
    END IF;
    SET p_done = v_id IS NOT NULL;
    IF p_done THEN
        DELETE FROM mq_grouped WHERE type = p_type AND group_key = p_group AND id = v_id;
        UPDATE mq_message SET sent_run_at = COALESCE(sent_run_at, run_at), run_at = p_next_at WHERE id = v_id;
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        SELECT p_type, p_next_at, v_id, m.priority, v_attempts FROM mq_message AS m FORCE INDEX (PRIMARY) WHERE m.id = v_id;
        INSERT INTO mq_group_lock (type, group_key, place, id) VALUES (p_type, p_group, IF(p_ordered, -1, 0), v_id);
    END IF;
END//

DELIMITER ;
