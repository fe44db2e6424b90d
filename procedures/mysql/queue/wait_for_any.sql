-- wait_for_any: wait until one of several types has a message to claim or the time is up.
-- Arguments:   p_types (1 to 1,000 types, one per line, as for claim_any), p_seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     type (the first of the list that is ready; else the one with the earliest next_run_at; NULL: nothing is
--              expected), ready, next_run_at, reason (of that type, as from wait_for_message; without one: the reason of the
--              first type of the list)
-- Errors:      50002 invalid_argument
-- Transaction: call it outside a transaction: a REPEATABLE READ transaction does not see messages that others send later
-- Example:     CALL mq_wait_for_any('email\nsms', 30);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_wait_for_any(
    IN p_types longtext CHARACTER SET utf8mb4,
    IN p_seconds bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- Seconds between two polls of all types: ten times as long as the poll, from 0.02 to at most one second. Between them,
    -- new messages are looked for: what commits late, is put back or becomes due is found by the next poll of all types.
    DECLARE c_pause double DEFAULT 0.02;
    DECLARE c_longest_pause double DEFAULT 1;
    DECLARE c_quick double DEFAULT 0.008;
    DECLARE v_left double DEFAULT COALESCE(p_seconds, 0);
    DECLARE v_pause, v_took, v_slept double;
    DECLARE v_seen, v_newest bigint;
    DECLARE v_is_new tinyint;
    DECLARE v_types, v_found, v_later longtext CHARACTER SET utf8mb4;
    DECLARE v_type, v_checked varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_now, v_after, v_first_at, v_at, v_room_at, v_scan_at, v_next_at datetime(6);
    DECLARE v_ready tinyint DEFAULT 0;
    DECLARE v_reason varchar(7) CHARACTER SET ascii;
    DECLARE i int;
    CALL imq_require_range('seconds', p_seconds, 0, 3600);
    CALL imq_read_types(p_types, v_types);
    SELECT COALESCE(MAX(id), 0) INTO v_seen FROM mq_message;
    polls: LOOP
        SET v_now = UTC_TIMESTAMP(6), i = 0;
        CALL imq_find_types(v_types, v_now, v_found, v_later);
        -- Of a type whose limits allow no message now, the time counts as of the others.
        SET v_type = JSON_UNQUOTE(JSON_EXTRACT(v_later, '$[0]')), v_first_at = JSON_UNQUOTE(JSON_EXTRACT(v_later, '$[1]'));
        WHILE NOT v_ready AND i < JSON_LENGTH(v_found) DO
            SET v_checked = JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', i, '][0]')));
            CALL imq_check_ready(v_checked, v_now, v_ready, v_room_at, v_scan_at, v_next_at);
            SET v_at = COALESCE(v_room_at, NULLIF(JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', i, '][1]'))), 'null'));
            IF v_ready OR v_at < COALESCE(v_first_at, '9999-12-31') THEN
                SET v_type = v_checked, v_first_at = v_at;
            END IF;
            SET i = i + 1;
        END WHILE;
        IF v_ready OR v_left <= 0 THEN
            LEAVE polls;
        END IF;
        SET v_took = TIMESTAMPDIFF(MICROSECOND, v_now, UTC_TIMESTAMP(6)) / 1e6;
        SET v_pause = LEAST(GREATEST(10 * v_took, c_pause), c_longest_pause, v_left);
        SET v_slept = 0, v_is_new = 0;
        WHILE v_slept < v_pause AND NOT v_is_new DO
            SET v_took = LEAST(c_quick, v_pause - v_slept);
            DO SLEEP(v_took);
            SELECT COALESCE(MAX(m.id), v_seen), COALESCE(MAX(JSON_CONTAINS(v_types, JSON_QUOTE(m.type))), 0)
            INTO v_newest, v_is_new
            FROM mq_message AS m FORCE INDEX (PRIMARY) WHERE m.id > v_seen;
            SET v_slept = v_slept + v_took, v_seen = v_newest;
        END WHILE;
        -- The clock may be set during the sleep.
        SET v_took = TIMESTAMPDIFF(MICROSECOND, v_now, UTC_TIMESTAMP(6)) / 1e6;
        SET v_left = v_left - IF(v_took BETWEEN v_slept AND v_slept + 1, v_took, v_slept);
    END LOOP;
    IF NOT v_ready THEN
        SET v_checked = COALESCE(v_type, JSON_UNQUOTE(JSON_EXTRACT(v_types, '$[0]')));
        CALL imq_check_ready(v_checked, v_now, v_ready, v_room_at, v_scan_at, v_next_at);
        -- The first type may be ready since.
        SET v_type = IF(v_ready, v_checked, v_type);
    END IF;
    CALL imq_wait_result(v_checked, v_now, v_ready, v_room_at, v_scan_at, v_next_at, v_reason);
    SELECT v_type AS type, v_ready AS ready, IF(v_type IS NULL, NULL, v_next_at) AS next_run_at, v_reason AS reason;
END
