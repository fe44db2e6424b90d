-- wait_for_message: wait until a message is ready or the time is up; polls 200 times per second.
-- Arguments:   p_type (1 to 200 characters), p_seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     ready (1: a message can be claimed; else 0), next_run_at (when the next delayed message or schedule is due
--              or the next lease expires, but not before a limit allows the next message; NULL: nothing is expected),
--              reason (ready, empty, delayed, paused, limited, blocked or unknown)
-- Errors:      50002 invalid_argument
-- Transaction: call it outside a transaction: a REPEATABLE READ transaction does not see messages that others send later
-- Example:     CALL mq_wait_for_message('email', 30);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_wait_for_message(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_seconds bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- Seconds between two polls; on average a message waits half of it. Every 33rd poll is a full one. After a full poll that
    -- takes longer than c_slow, because it scans many dead rows, the pause is ten times as long as the poll, at most one second.
    DECLARE c_pause double DEFAULT 0.005;
    DECLARE c_slow double DEFAULT 0.002;
    DECLARE c_longest_pause double DEFAULT 1;
    DECLARE c_quick int DEFAULT 32;
    DECLARE v_now, v_before, v_scan_at, v_room_at, v_next_at datetime(6);
    DECLARE v_left double DEFAULT COALESCE(p_seconds, 0);
    DECLARE v_slept, v_took, v_pause double;
    DECLARE v_polls int;
    DECLARE v_ready tinyint DEFAULT 0;
    DECLARE v_reason varchar(7) CHARACTER SET ascii;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('seconds', p_seconds, 0, 3600);
    SET v_now = UTC_TIMESTAMP(6);
    polls: LOOP
        CALL imq_check_ready(p_type, v_now, v_ready, v_room_at, v_scan_at, v_next_at);
        IF v_ready OR v_left <= 0 THEN
            LEAVE polls;
        END IF;
        SET v_before = UTC_TIMESTAMP(6), v_polls = 0, v_slept = 0;
        SET v_took = TIMESTAMPDIFF(MICROSECOND, v_now, v_before) / 1e6;
        SET v_pause = IF(v_took > c_slow, LEAST(10 * v_took, c_longest_pause), c_pause);
        -- Between two full polls, check only for the most frequent cases: a new message and a due message.
        quick: LOOP
            SET v_pause = LEAST(v_pause, v_left - v_slept);
            DO SLEEP(v_pause);
            SELECT EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
                OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type
                    AND d.run_at <= UTC_TIMESTAMP(6) AND d.attempts >= 0)
            INTO v_ready;
            SET v_slept = v_slept + v_pause, v_polls = v_polls + 1;
            IF v_ready OR v_polls = c_quick OR v_pause > c_pause OR v_slept >= v_left THEN
                LEAVE quick;
            END IF;
        END LOOP;
        -- The clock may be set during the sleep.
        SET v_now = UTC_TIMESTAMP(6);
        SET v_took = TIMESTAMPDIFF(MICROSECOND, v_before, v_now) / 1e6;
        SET v_left = v_left - IF(v_took BETWEEN v_slept AND v_slept + 1, v_took, v_slept);
    END LOOP;
    CALL imq_wait_result(p_type, v_now, v_ready, v_room_at, v_scan_at, v_next_at, v_reason);
    SELECT v_ready AS ready, v_next_at AS next_run_at, v_reason AS reason;
END
