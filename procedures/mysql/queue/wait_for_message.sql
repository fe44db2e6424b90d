-- wait_for_message: wait until a message is ready or the time is up; polls 50 times per second.
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
    -- Seconds between two polls; on average a message waits half of it. After a poll that scans many dead rows the pause is
    -- ten times as long as the poll, at most one second. Every ninth poll is a full one.
    DECLARE c_pause double DEFAULT 0.02;
    DECLARE c_longest_pause double DEFAULT 1;
    DECLARE c_quick int DEFAULT 8;
    DECLARE v_now, v_before, v_scan_at datetime(6);
    DECLARE v_left double DEFAULT COALESCE(p_seconds, 0);
    DECLARE v_slept, v_took double;
    DECLARE v_polls int;
    DECLARE v_ready, v_limited tinyint DEFAULT 0;
    DECLARE v_room_at, v_next_at datetime(6);
    DECLARE v_pause double DEFAULT 0.005;
    DECLARE v_known tinyint;
    DECLARE v_reason varchar(7) CHARACTER SET ascii DEFAULT 'ready';
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('seconds', p_seconds, 0, 3600);
    SET v_now = UTC_TIMESTAMP(6);
    polls: LOOP
        -- A claim rescues expired claims and sends due schedules only in a full scan: see pick and claim_wraparound. They are
        -- not ready before the next one.
        SELECT COALESCE(MAX(t.scan_at), '1000-01-01') INTO v_scan_at
        FROM (
            SELECT scanned_at + INTERVAL 1 SECOND AS scan_at FROM mq_mark FORCE INDEX (mark_newest)
            WHERE type = p_type ORDER BY n DESC LIMIT 1
        ) AS t
        WHERE t.scan_at BETWEEN v_now AND v_now + INTERVAL 6 SECOND;
        CALL imq_next_due(p_type, v_next_at);
        -- SELECT ... INTO reads without locks; a subquery in SET or IF locks.
        SELECT q.paused = 0 AND (
            EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
            OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type AND d.run_at <= v_now
                AND d.attempts >= 0)
            OR v_scan_at <= v_now AND (
                EXISTS (SELECT 1 FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type
                    AND b.lease_until <= v_now AND b.lease_seconds >= 0)
                OR COALESCE(v_next_at <= v_now, 0)
            )
        ), q.max_active + q.rate > 0
        INTO v_ready, v_limited
        FROM mq_queue AS q WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
        SET v_room_at = NULL;
        IF v_ready AND v_limited THEN
            CALL imq_has_room(p_type, v_now, v_ready, v_room_at);
        END IF;
        IF v_ready OR v_left <= 0 THEN
            LEAVE polls;
        END IF;
        SET v_before = UTC_TIMESTAMP(6), v_polls = 0, v_slept = 0;
        SET v_pause = GREATEST(v_pause, LEAST(10 * TIMESTAMPDIFF(MICROSECOND, v_now, v_before) / 1e6, c_longest_pause));
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
            SET v_pause = LEAST(2 * v_pause, c_pause);
        END LOOP;
        -- The clock may be set during the sleep.
        SET v_now = UTC_TIMESTAMP(6);
        SET v_took = TIMESTAMPDIFF(MICROSECOND, v_before, v_now) / 1e6;
        SET v_left = v_left - IF(v_took BETWEEN v_slept AND v_slept + 1, v_took, v_slept), v_pause = c_pause;
    END LOOP;
    IF NOT v_ready THEN
        SELECT CASE
            WHEN q.paused THEN 'paused'
            WHEN q.max_active + q.rate > 0 AND (
                EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
                OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type AND d.run_at <= v_now)
            ) THEN 'limited'
            WHEN q.grouped AND EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
                THEN IF(q.ordered, 'blocked', 'limited')
            WHEN v_next_at IS NOT NULL OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type) THEN 'delayed'
        END INTO v_reason
        FROM mq_queue AS q WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
        IF v_reason IS NULL THEN
            CALL imq_is_known(p_type, v_known);
            SET v_reason = IF(v_known, 'empty', 'unknown');
        END IF;
    END IF;
    SELECT v_ready AS ready, COALESCE(v_room_at, MIN(t.due)) AS next_run_at, v_reason AS reason
    FROM (
        (SELECT run_at AS due FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type ORDER BY run_at, id LIMIT 1)
        UNION ALL
        (SELECT GREATEST(lease_until, v_scan_at) FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type ORDER BY lease_until LIMIT 1)
        UNION ALL
        (SELECT GREATEST(v_next_at, v_scan_at))
    ) AS t;
END
