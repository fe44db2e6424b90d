-- leave_place: remove a message of state N from mq_ready or mq_delayed.
-- Arguments:   p_type, p_grouped (the policy), p_id, p_group_key ('' for none), p_priority,
--              p_run_at (the message's own)
-- Returns:     p_attempts (NULL: nothing was removed, or another transaction is claiming the message) and p_error of the
--              last attempt
--
-- Rows are searched by whole primary keys, and only in tables that seem to have them. At REPEATABLE READ a search for a
-- missing row takes a gap lock, and other senders would wait. The tickets of a grouped queue stay: they are only hints.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_leave_place(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_grouped tinyint, IN p_id bigint,
    IN p_group_key varchar(200) CHARACTER SET utf8mb4, IN p_priority smallint, IN p_run_at datetime(6),
    OUT p_attempts smallint, OUT p_error text CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_in_delayed, v_in_lane, v_in_ring tinyint;
    DECLARE v_priority smallint;
    DECLARE v_lane varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_run_at datetime(6);
    SELECT EXISTS (SELECT * FROM mq_delayed WHERE type = p_type AND run_at = p_run_at AND id = p_id) INTO v_in_delayed;
    IF v_in_delayed OR p_run_at > UTC_TIMESTAMP(6) THEN
        SELECT MAX(d.attempts), MAX(d.error) INTO p_attempts, p_error
        FROM (
            SELECT attempts, error FROM mq_delayed WHERE type = p_type AND run_at = p_run_at AND id = p_id FOR UPDATE SKIP LOCKED
        ) AS d;
        IF p_attempts IS NOT NULL THEN
            DELETE FROM mq_delayed WHERE type = p_type AND run_at = p_run_at AND id = p_id;
        END IF;
    END IF;
    -- It may also have been promoted since the caller's snapshot.
    IF p_attempts IS NULL AND p_grouped THEN
        SELECT MAX(g.attempts) INTO p_attempts
        FROM (
            SELECT attempts FROM mq_grouped WHERE type = p_type AND group_key = p_group_key AND id = p_id FOR UPDATE SKIP LOCKED
        ) AS g;
        IF p_attempts IS NOT NULL THEN
            DELETE FROM mq_grouped WHERE type = p_type AND group_key = p_group_key AND id = p_id;
        END IF;
    ELSEIF p_attempts IS NULL THEN
        -- At its own position, in its lane of a fair queue, or in a ring. Not by the policy: set_queue leaves rows that others
        -- have locked to later claims (see move_ready).
        SELECT EXISTS (
                SELECT * FROM mq_ready WHERE type = p_type AND priority = p_priority AND lane = p_group_key AND run_at = '1000-01-01' AND id = p_id
            ), EXISTS (
                SELECT * FROM mq_ready WHERE type = p_type AND priority = -32768 AND lane = '' AND run_at = '1000-01-01' AND id = p_id
            )
        INTO v_in_lane, v_in_ring;
        SET v_priority = IF(v_in_ring, -32768, p_priority), v_lane = IF(v_in_lane, p_group_key, ''),
            v_run_at = IF(v_in_lane OR v_in_ring, '1000-01-01', p_run_at);
        SELECT MAX(r.attempts) INTO p_attempts
        FROM (
            SELECT attempts FROM mq_ready
            WHERE type = p_type AND priority = v_priority AND lane = v_lane AND run_at = v_run_at AND id = p_id
            FOR UPDATE SKIP LOCKED
        ) AS r;
        IF p_attempts IS NOT NULL THEN
            DELETE FROM mq_ready WHERE type = p_type AND priority = v_priority AND lane = v_lane AND run_at = v_run_at AND id = p_id;
        END IF;
    END IF;
END
