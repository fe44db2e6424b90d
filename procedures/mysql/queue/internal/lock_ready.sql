-- lock_ready: delete the first ready messages of a type from mq_ready, and skip messages that another transaction has
--             locked.
-- Arguments:   p_type, p_size (maximum number of messages), p_places (the marks to start at: a JSON array of [priority,
--              run_at, id]; '[]': scan from the very start), p_before (0: no message is before the first mark), p_latest
--              (no segment starts later)
-- Returns:     p_items: a JSON array of [id, number of the new attempt, priority, run_at] in claim order, NULL when there
--              are none; p_front_moved: 1 when the marks must be renewed
--
-- While a transaction keeps a snapshot open, InnoDB keeps every deleted row. A claim that starts at the beginning of the
-- index then scans every message that was finished since. The marks divide the index into segments:
--
--     start ........ mark of priority 0 ........ mark of priority 5 ........ end of the type
--        segment 0   |       segment 1           |       segment 2
--
-- A mark starts a segment, which ends before the priority of the next mark. All messages between the beginning of a
-- priority and its mark are finished. A priority without a mark belongs to the segment before it and is scanned from its
-- beginning, so the first message that is found there becomes its mark.
--
-- Plans. The server's statistics may show a table with a backlog as empty, because the table is new or has many dead rows.
-- MySQL would then read the whole table, or the whole of an index that covers the query. So each read names its index, here
-- and elsewhere, and a range also names a column that is not in that index: attempts >= 0 is always true. lane <= '' is
-- lane = '', with which MariaDB 10.11 would read and sort the whole backlog.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lock_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_places longtext CHARACTER SET utf8mb4,
    IN p_before tinyint, IN p_latest datetime(6), OUT p_items longtext CHARACTER SET utf8mb4, OUT p_front_moved tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Renew a mark when the first message is this many ids after it. A dead row costs a claim 0.1 to 0.2 microseconds, a
    -- mark 300.
    DECLARE c_stride bigint DEFAULT 1000;
    -- As in renew_marks. Priorities after the eighth get no mark.
    DECLARE c_marks int DEFAULT 8;
    DECLARE v_segment int DEFAULT 0;
    -- The first segment has no mark.
    DECLARE v_priority int DEFAULT -32769;
    DECLARE v_run_at, v_from_run_at, v_first_run_at datetime(6);
    DECLARE v_id, v_from_id, v_first_id bigint;
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_count, v_end, v_first_priority, v_last_priority int;
    DECLARE v_some tinyint;
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SET p_items = NULL, p_front_moved = 0, v_end = JSON_EXTRACT(p_places, '$[0][0]'), v_some = p_before OR v_end IS NULL;
    segments: LOOP
        SET v_end = COALESCE(v_end, 32768), v_count = 0;
        IF v_some AND v_left = 1 THEN
            -- The same query without JSON arrays, which cost a temporary table.
            SELECT 1, CONCAT('[[', id, ',', attempts + 1, ',', priority, ',"', run_at, '"]]'), id, priority, priority, run_at
            INTO v_count, v_found, v_first_id, v_first_priority, v_last_priority, v_first_run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND lane <= '' AND (priority > v_priority AND priority < v_end
                OR priority = v_priority AND lane = '' AND (run_at > v_from_run_at OR run_at = v_from_run_at AND id >= v_from_id))
            ORDER BY priority, lane, run_at, id
            LIMIT 1
            FOR UPDATE SKIP LOCKED;
        ELSEIF v_some THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
                ORDER BY r.priority, r.run_at, r.id), ']'), COUNT(*), MIN(r.priority), MAX(r.priority)
            INTO v_found, v_count, v_first_priority, v_last_priority
            FROM (
                SELECT id, attempts, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND lane <= '' AND (priority > v_priority AND priority < v_end
                    OR priority = v_priority AND lane = '' AND (run_at > v_from_run_at OR run_at = v_from_run_at AND id >= v_from_id))
                ORDER BY priority, lane, run_at, id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
        END IF;
        IF v_count > 0 THEN
            SET p_items = IF(p_items IS NULL, v_found,
                CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2))),
                v_left = v_left - v_count, v_first_id = JSON_EXTRACT(v_found, '$[0][0]');
            -- The first message of a priority has moved, or a priority may have a mark but has none.
            SET p_front_moved = p_front_moved
                OR v_first_priority = v_priority AND v_first_id NOT BETWEEN v_id - c_stride AND v_id + c_stride
                OR v_last_priority > v_priority AND v_segment < c_marks;
        END IF;
        IF v_end = 32768 OR v_left = 0 THEN
            LEAVE segments;
        END IF;
        -- The next segment starts at its mark, or at p_latest if that is earlier: messages may have appeared there since.
        SET v_priority = v_end, v_run_at = JSON_UNQUOTE(JSON_EXTRACT(p_places, CONCAT('$[', v_segment, '][1]'))),
            v_id = JSON_EXTRACT(p_places, CONCAT('$[', v_segment, '][2]')), v_from_run_at = LEAST(v_run_at, p_latest),
            v_from_id = IF(v_run_at < p_latest, v_id, 0), v_segment = v_segment + 1, v_some = 1,
            v_end = JSON_EXTRACT(p_places, CONCAT('$[', v_segment, '][0]'));
    END LOOP;
    IF p_items IS NOT NULL AND p_size = 1 THEN
        DELETE FROM mq_ready WHERE type = p_type AND priority = v_first_priority AND lane = '' AND run_at = v_first_run_at AND id = v_first_id;
    ELSEIF p_items IS NOT NULL THEN
        CALL imq_delete_ready(p_type, p_items);
    END IF;
END
