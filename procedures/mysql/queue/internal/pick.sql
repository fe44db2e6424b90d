-- pick: take up to p_size ready messages of a type out of mq_ready, in claim order or round-robin; before that, rescue
--       expired claims, promote due messages and send due schedules.
-- Arguments:   p_type, p_grouped and p_fair (the policy), p_size, p_take (1: called by take_batch; see pick_grouped),
--              p_consumer (of a ring, to claim round-robin; NULL: in claim order), p_after_id (see claim_ring)
-- Returns:     p_items: a JSON array of [id, number of this attempt, ...]; NULL when nothing is ready
--
-- A claim starts at the low-water marks of mq_mark, where earlier claims found their first messages (see lock_ready). No
-- message is skipped for longer than a second:
-- 1. A procedure that puts a message back below a mark calls lower_mark. When a message becomes due below a mark, this
--    procedure lowers the mark.
-- 2. Two kinds of messages can appear below a mark without lowering it: their sender commits late, or a take rolls back. So
--    no segment starts later than one second ago, and the first claim of each second is a full scan: it ignores the marks.
-- A round-robin claim is a full scan unless the last one took long, and leaves no mark while its scans are short.
-- If a full scan takes long because of many dead rows, the next one is later: after ten times that time, at most 5 seconds.
-- docs/background/how-a-claim-works.md explains this with a drawing.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_grouped tinyint, IN p_fair tinyint, IN p_size int,
    IN p_take tinyint, IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_after_id bigint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Seconds: the longest time that a message may be skipped, and how far ahead scanned_at may be.
    DECLARE c_late int DEFAULT 1;
    DECLARE c_ahead int DEFAULT 5;
    -- Microseconds. A full scan that takes longer than this and finds nothing has read dead rows. Idle consumers should not
    -- repeat it often.
    DECLARE c_long_scan int DEFAULT 5000;
    DECLARE c_long_ago datetime(6) DEFAULT '1000-01-01';
    DECLARE c_never datetime(6) DEFAULT '9999-12-31';
    -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
    DECLARE v_rescue int DEFAULT IF(p_take, 1, 20);
    DECLARE v_promote int DEFAULT IF(p_take, p_size, GREATEST(2 * p_size, 100));
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_n, v_moved bigint;
    DECLARE v_scanned_at, v_promoted_to datetime(6);
    DECLARE v_lowered_to datetime(6) DEFAULT c_never;
    DECLARE v_raised_to datetime(6) DEFAULT c_long_ago;
    DECLARE v_places longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    DECLARE v_full_scan, v_some, v_front_moved, v_before, v_converted, v_long tinyint;
    DECLARE v_first_mark int;
    DECLARE v_marks_changed tinyint DEFAULT 0;
    SELECT n, scanned_at, promoted_to, places INTO v_n, v_scanned_at, v_promoted_to, v_places
    FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type ORDER BY n DESC LIMIT 1;
    -- A scanned_at further ahead, or a promotion in the future, means that the clock was set back.
    SET v_full_scan = COALESCE(v_now NOT BETWEEN v_scanned_at - INTERVAL c_ahead + 1 SECOND
            AND v_scanned_at + INTERVAL IF(p_consumer IS NULL, c_late, 0) SECOND
        OR v_promoted_to > v_now + INTERVAL 100000 MICROSECOND, 1);
    IF v_full_scan OR p_consumer IS NOT NULL THEN
        SELECT EXISTS (
                SELECT * FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type AND lease_until <= v_now AND lease_seconds >= 0
            ),
            (SELECT converted FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1)
        INTO v_some, v_converted;
        IF v_some THEN
            CALL imq_rescue(p_type, v_rescue, v_moved);
            SET v_places = '[]';
        END IF;
    END IF;
    IF v_full_scan THEN
        CALL imq_send_due(p_type, v_promote);
        IF v_converted AND NOT p_take THEN
            CALL imq_move_ready(p_type, 0);
        END IF;
        IF p_grouped AND NOT p_take THEN
            CALL imq_clean_buckets(p_type, v_now);
        END IF;
        SET v_promoted_to = c_long_ago;
    END IF;

    -- Check for due messages, and for ready messages before the first mark. There are rarely any, and a check costs less
    -- than a locking scan. The second check reads backward from its end: MariaDB reads past the end of a range, where all
    -- the dead rows before the mark would follow. SELECT ... INTO, because a subquery in IF or SET locks what it reads.
    SET v_first_mark = IF(v_full_scan, NULL, JSON_EXTRACT(v_places, '$[0][0]'));
    SELECT EXISTS (
            SELECT * FROM mq_delayed FORCE INDEX (PRIMARY)
            WHERE type = p_type AND run_at > v_promoted_to AND run_at <= v_now AND attempts >= 0
        ), (
            SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND priority < v_first_mark AND attempts >= 0
            ORDER BY priority DESC, lane DESC, run_at DESC, id DESC LIMIT 1
        ) IS NOT NULL
    INTO v_some, v_before;
    IF v_some THEN
        CALL imq_promote(p_type, v_promoted_to, v_now, v_promote, v_moved, v_lowered_to);
        SET v_promoted_to = IF(v_moved < v_promote, v_now, c_long_ago), v_lowered_to = COALESCE(v_lowered_to, c_never);
        SET v_before = 1;
        SELECT EXISTS (
            SELECT * FROM JSON_TABLE(v_places, '$[*]' COLUMNS (run_at datetime(6) PATH '$[1]')) AS k
            WHERE k.run_at >= v_lowered_to
        ) INTO v_marks_changed;
    ELSE
        SET v_promoted_to = v_now;
    END IF;

    IF p_grouped OR p_fair THEN
        IF p_grouped THEN
            CALL imq_pick_grouped(p_type, p_size, p_take, v_full_scan, LEAST(v_lowered_to, v_now - INTERVAL c_late SECOND), v_places,
                v_front_moved, p_items);
        ELSE
            -- These claims start at no mark. The row only records the time of the last full scan.
            SET v_places = '[]', v_front_moved = 0, v_marks_changed = 0;
            CALL imq_pick_fair(p_type, p_size, p_items);
        END IF;
        SET v_long = UTC_TIMESTAMP(6) > v_now + INTERVAL c_long_scan MICROSECOND, v_promoted_to = c_long_ago,
            v_marks_changed = v_marks_changed OR v_front_moved
                OR v_full_scan AND (p_items IS NOT NULL OR v_long AND JSON_LENGTH(v_places) > 0);
    ELSE
        IF p_consumer IS NULL THEN
            CALL imq_lock_ready(p_type, p_size, IF(v_full_scan, '[]', v_places), v_before,
                LEAST(v_lowered_to, v_now - INTERVAL c_late SECOND), p_items, v_front_moved);
        ELSE
            CALL imq_claim_ring(p_type, p_size, p_consumer, p_after_id, IF(v_full_scan OR v_marks_changed, '[]', v_places), p_items,
                v_places, v_front_moved);
        END IF;
        SET v_long = UTC_TIMESTAMP(6) > v_now + INTERVAL c_long_scan MICROSECOND;
        IF p_items IS NOT NULL THEN
            SET v_marks_changed = v_marks_changed OR v_front_moved OR v_full_scan AND (p_consumer IS NULL OR v_long);
        ELSEIF v_full_scan AND JSON_LENGTH(v_places) > 0 AND v_long THEN
            -- Nothing is ready: move all marks up to now.
            SET v_marks_changed = 1, v_raised_to = IF(p_consumer IS NULL, v_now, c_long_ago);
        END IF;
    END IF;
    IF v_marks_changed THEN
        IF v_full_scan THEN
            SET v_scanned_at = v_now
                + INTERVAL LEAST(10 * TIMESTAMPDIFF(MICROSECOND, v_now, UTC_TIMESTAMP(6)), c_ahead * 1000000) MICROSECOND;
        END IF;
        CALL imq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to, v_places,
            IF(p_grouped OR p_fair OR p_consumer IS NOT NULL, NULL, p_items), v_raised_to, IF(p_consumer IS NULL, v_lowered_to, c_never));
    END IF;
END
