-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued
--       and due messages promoted on the way.
-- Arguments:   p_type, p_ordered (the policy), p_size, p_take (1: the caller's transaction may be long: see pick_ordered)
-- Returns:     p_items: a JSON array of [id, number of this attempt, ...]; NULL when nothing is ready
-- Errors:      none
-- Transaction: joins the caller's; never waits for another claim
-- Example:     CALL mq_pick('email', 0, 10, 0, @items);
--
-- Low-water marks. While a transaction with a snapshot is open, InnoDB keeps every deleted row, and a claim that starts at the
-- front of the index scans every message done since. So claims start where earlier claims began to find something: mq_mark holds
-- one such place per priority. Each mark starts a segment that ends before the next mark, and before the first mark lies one
-- more segment. So priorities without a mark are scanned as well, from their start.
--
-- No message is passed over for longer than a second. What is put back or becomes due below a mark lowers it. Two messages can
-- still appear below a mark unseen: one whose sender commits late, and one whose take rolls back. For the first, no segment
-- starts later than a second ago. For both, the first claim of each second is a full scan: it ignores the marks and reads the
-- type from its very start. After a full scan that took long, because the dead rows are many, the next one waits ten times as
-- long, at most 5 seconds.
--
-- Plans. The server's statistics may call a table empty that holds a backlog, because it is new or behind dead rows. Then
-- MySQL would read all of it, or all of an index that has every column the query names. Reads name their index, here and
-- elsewhere, and a range also a column outside it: attempts >= 0 is always true.

DROP PROCEDURE IF EXISTS mq_pick;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_ordered tinyint,
    IN p_size int,
    IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- How long a message may be passed over, and how far a full scan may be noted ahead, in seconds.
    DECLARE c_late int DEFAULT 1;
    DECLARE c_ahead int DEFAULT 5;
    -- A mark is renewed when the front has moved by so many ids: a dead row costs a claim 0.1 to 0.2 microseconds, a mark 300.
    DECLARE c_stride bigint DEFAULT 1000;
    -- Every mark costs a statement in each claim that comes short. Further priorities are claimed without marks.
    DECLARE c_marks int DEFAULT 8;
    -- A full scan that took so many microseconds and found nothing has read dead rows: idle consumers need not do it all the time.
    DECLARE c_long_scan int DEFAULT 5000;
    DECLARE c_long_ago datetime(6) DEFAULT '1000-01-01';
    DECLARE c_never datetime(6) DEFAULT '9999-12-31';
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    DECLARE v_rescue int DEFAULT IF(p_take, 1, 20);
    DECLARE v_promote int DEFAULT IF(p_take, p_size, GREATEST(2 * p_size, 100));
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_n, v_id, v_from_id, v_first_id, v_moved bigint;
    DECLARE v_scanned_at, v_promoted_to, v_run_at, v_from_run_at datetime(6);
    DECLARE v_lowered_to datetime(6) DEFAULT c_never;
    DECLARE v_raised_to datetime(6) DEFAULT c_long_ago;
    DECLARE v_places, v_found longtext CHARACTER SET utf8mb4;
    DECLARE v_full_scan, v_some tinyint;
    DECLARE v_marks_changed tinyint DEFAULT 0;
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_count, v_end, v_first_priority, v_last_priority int;
    DECLARE v_segment int DEFAULT 0;
    -- The first segment belongs to no mark.
    DECLARE v_priority int DEFAULT -32769;

    SET p_items = NULL;
    BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_places = '[]';
        SELECT n, scanned_at, promoted_to, places INTO v_n, v_scanned_at, v_promoted_to, v_places
        FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type ORDER BY n DESC LIMIT 1;
    END;
    -- Noted further ahead, or something promoted in a time to come: the clock was set back since.
    SET v_full_scan = COALESCE(v_now NOT BETWEEN v_scanned_at - INTERVAL c_ahead + 1 SECOND AND v_scanned_at + INTERVAL c_late SECOND
        OR v_promoted_to > v_now + INTERVAL 100000 MICROSECOND, 1);
    IF v_full_scan THEN
        SELECT EXISTS (
            SELECT * FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type AND lease_until <= v_now AND lease_seconds >= 0
        ) INTO v_some;
        IF v_some THEN
            CALL mq_rescue(p_type, v_rescue, v_moved);
        END IF;
        SET v_promoted_to = c_long_ago;
    END IF;

    -- Not IF EXISTS (...): in an IF or a SET the server locks what it reads.
    SELECT EXISTS (
        SELECT * FROM mq_delayed FORCE INDEX (PRIMARY)
        WHERE type = p_type AND run_at > v_promoted_to AND run_at <= v_now AND attempts >= 0
    ) INTO v_some;
    IF v_some THEN
        CALL mq_promote(p_type, v_promoted_to, v_now, v_promote, v_moved, v_lowered_to);
        SET v_promoted_to = IF(v_moved < v_promote, v_now, c_long_ago), v_lowered_to = COALESCE(v_lowered_to, c_never);
        SELECT EXISTS (
            SELECT * FROM JSON_TABLE(v_places, '$[*]' COLUMNS (run_at datetime(6) PATH '$[1]')) AS k WHERE k.run_at >= v_lowered_to
        ) INTO v_marks_changed;
    ELSE
        SET v_promoted_to = v_now;
    END IF;

    IF p_ordered THEN
        CALL mq_pick_ordered(p_type, p_size, p_take, p_items);
        -- No claim of tickets begins at a mark. They only tell when the last full scan was.
        SET v_marks_changed = v_full_scan AND p_items IS NOT NULL, v_places = '[]', v_promoted_to = c_long_ago, v_left = 0;
    END IF;

    segments: WHILE v_left > 0 DO
        -- The first segment of a full scan is the only one.
        SET v_end = IF(v_full_scan, NULL, JSON_EXTRACT(v_places, CONCAT('$[', v_segment, '][0]'))), v_some = 1;
        IF v_segment = 0 AND v_end IS NOT NULL THEN
            -- Mostly empty, and to ask is cheaper than to lock. From its end: MariaDB goes on past the end of what it reads, and
            -- there it would read all dead rows before the mark.
            SELECT (
                SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND priority < v_end AND attempts >= 0
                ORDER BY priority DESC, run_at DESC, id DESC LIMIT 1
            ) IS NOT NULL INTO v_some;
        END IF;
        SET v_end = COALESCE(v_end, 32768);
        IF v_some THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
                ORDER BY r.priority, r.run_at, r.id), ']'), COUNT(*), MIN(r.priority), MAX(r.priority)
            INTO v_found, v_count, v_first_priority, v_last_priority
            FROM (
                SELECT id, attempts, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > v_priority AND priority < v_end
                    OR priority = v_priority AND (run_at > v_from_run_at OR run_at = v_from_run_at AND id >= v_from_id))
                ORDER BY priority, run_at, id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                SET p_items = IF(p_items IS NULL, v_found,
                    CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2))), v_left = v_left - v_count,
                    v_first_id = JSON_EXTRACT(v_found, '$[0][0]');
                -- A full scan is noted, the front has moved, or there is a priority that may have a mark and has none.
                SET v_marks_changed = v_marks_changed OR v_full_scan
                    OR v_first_priority = v_priority AND v_first_id NOT BETWEEN v_id - c_stride AND v_id + c_stride
                    OR v_last_priority > v_priority AND v_segment < c_marks;
            END IF;
        END IF;
        IF v_end = 32768 THEN
            LEAVE segments;
        END IF;
        -- The next segment begins at the mark, or before it, where a message may have appeared since.
        SET v_priority = v_end, v_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_places, CONCAT('$[', v_segment, '][1]'))),
            v_id = JSON_EXTRACT(v_places, CONCAT('$[', v_segment, '][2]')),
            v_from_run_at = LEAST(v_run_at, v_lowered_to, v_now - INTERVAL c_late SECOND),
            v_from_id = IF(v_from_run_at = v_run_at AND v_run_at < v_lowered_to, v_id, 0), v_segment = v_segment + 1;
    END WHILE;

    IF v_full_scan AND p_items IS NULL AND JSON_LENGTH(v_places) > 0
        AND UTC_TIMESTAMP(6) > v_now + INTERVAL c_long_scan MICROSECOND
    THEN
        -- Nothing is ready: all marks move up to now.
        SET v_marks_changed = 1, v_raised_to = v_now;
    END IF;
    IF v_marks_changed THEN
        CALL mq_renew_marks(p_type, v_n, IF(v_full_scan, v_now + INTERVAL LEAST(10 * TIMESTAMPDIFF(MICROSECOND, v_now,
            UTC_TIMESTAMP(6)), c_ahead * 1000000) MICROSECOND, v_scanned_at), v_promoted_to, v_places, IF(p_ordered, NULL, p_items),
            c_marks, v_raised_to, v_lowered_to);
    END IF;
    IF p_items IS NOT NULL AND NOT p_ordered THEN
        CALL mq_delete_ready(p_type, p_items);
    END IF;
END//

DELIMITER ;
