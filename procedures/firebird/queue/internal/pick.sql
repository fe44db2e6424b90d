-- pick: take up to p_size ready messages of a type out of mq_ready, in claim order.
-- Arguments:   p_type, p_size, p_grouped and p_fair (the policy), p_take (1: called by take_batch; see pick_grouped)
-- Returns:     id, attempt (the number of this attempt) and n, which gives the order of the batch
-- Transaction: the caller fetches all rows
--
-- Low-water marks. An open snapshot prevents the cleanup of dead rows. A claim that starts at the beginning of the index
-- then scans every message that was finished since. So a claim starts at the marks of mq_mark, one per priority, where
-- earlier claims found their first messages. Each mark starts a segment, which ends before the priority of the next mark;
-- one more segment lies before the first mark. A priority without a mark belongs to the segment before it and is scanned
-- from its beginning.
--
-- No message is skipped for longer than a second. A procedure that puts a message back below a mark calls lower_mark. When
-- a message becomes due below a mark, this procedure lowers the mark. Two kinds of messages can appear below a mark without
-- lowering it: their sender commits late, or a take rolls back. So no segment starts later than one second ago, and the
-- first claim of each second is a full scan: it ignores the marks. If a full scan takes long because of many dead rows, the
-- next one is later: after ten times that time, at most 5 seconds. docs/background/how-a-claim-works.md explains this with a drawing.
--
-- The engine may restart a claim. The rows that it deleted before the restart are then below the marks. So a claim that
-- finds nothing makes a full scan at once, and a claim that finds too few messages makes the next claim a full scan.
--
-- The file is long because a helper procedure between it and take_ready would double the cost of reading each message.
CREATE OR ALTER PROCEDURE imq_pick (
    p_type mq_name, p_size integer, p_grouped smallint, p_fair smallint, p_take smallint
)
RETURNS (id bigint, attempt smallint, n integer)
AS
-- Renew a mark when the first message is this many ids after it.
DECLARE c_stride integer = 1000;
-- Each mark costs one more scan in a claim that finds too few messages. Priorities after the eighth get no mark.
DECLARE c_marks integer = 8;
-- Milliseconds. A full scan that takes longer than this and finds nothing has read dead rows. Idle consumers should not
-- repeat it often.
DECLARE c_long_scan integer = 5;
DECLARE c_changed integer = 10;
DECLARE c_long_ago timestamp = '1900-01-01';
DECLARE v_now timestamp; DECLARE v_scanned_at timestamp; DECLARE v_promoted_to timestamp;
DECLARE v_n bigint;
DECLARE v_full_scan smallint;
DECLARE v_marks_changed smallint = 0;
DECLARE v_left integer;
DECLARE v_lowered_to timestamp;
DECLARE v_scans integer = 1;
DECLARE v_begun timestamp; DECLARE v_from_run_at timestamp; DECLARE v_next_run_at timestamp;
DECLARE v_found_run_at timestamp;
DECLARE v_milliseconds integer; DECLARE v_segment integer; DECLARE v_priority integer; DECLARE v_end integer;
DECLARE v_from_id bigint; DECLARE v_id bigint; DECLARE v_next_id bigint;
DECLARE v_found_priority smallint;
DECLARE v_last_priority integer = -32769;
-- The first row found of each priority, as fixed-width text: priority + 32768 in 5 characters, run_at in 24, id in 19.
DECLARE v_found varchar(400) CHARACTER SET ASCII = '';
BEGIN
    v_left = p_size;
    EXECUTE PROCEDURE imq_make_ready(p_type, p_size, p_grouped, 0, p_take)
        RETURNING_VALUES v_now, v_n, v_scanned_at, v_id, v_full_scan, v_promoted_to, v_lowered_to;
    IF (p_grouped = 1 OR p_fair = 1) THEN
    BEGIN
        -- For some seconds after a change of limits per group, unblock stuck groups: claims that began with the old limits have
        -- committed by then. Not later in this call: its own messages are in no batch yet and would look stuck.
        IF (p_grouped = 1 AND v_full_scan = 1 AND p_take = 0 AND EXISTS (
            SELECT * FROM mq_queue WHERE type = :p_type AND changed_at BETWEEN DATEADD(-:c_changed SECOND TO :v_now) AND :v_now
        )) THEN
            EXECUTE PROCEDURE imq_unblock_groups(p_type);
        IF (p_fair = 1) THEN
            FOR SELECT id, attempt, n FROM imq_pick_fair(:p_type, :p_size, :p_grouped, :p_take) INTO id, attempt, n DO
            BEGIN
                v_left = v_left - 1;
                SUSPEND;
            END
        ELSE
            FOR SELECT id, attempt FROM imq_pick_grouped(:p_type, :p_size, :p_take, NULL, NULL, 0, 1) INTO id, attempt DO
            BEGIN
                v_left = v_left - 1;
                n = p_size - v_left;
                SUSPEND;
            END
        IF (v_full_scan = 1 AND v_left < p_size) THEN
            -- Claims of lanes and tickets start at no mark. The row only records the time of the last full scan.
            EXECUTE PROCEDURE imq_renew_marks(p_type, v_n, v_now, c_long_ago, '', c_long_ago, v_lowered_to, 1);
        IF (p_grouped = 1 AND v_full_scan = 1 AND p_take = 0) THEN
            EXECUTE PROCEDURE imq_forget_buckets(p_type);
        EXIT;
    END

    WHILE (v_scans > 0) DO
    BEGIN
        v_begun = IIF(v_full_scan = 1, mq_utc_now(), NULL);
        v_segment = 1;
        v_priority = -32769;
        v_from_run_at = NULL;
        -- A full scan is a single segment.
        FOR SELECT k.priority, k.run_at, k.id
            FROM mq_mark AS k
            WHERE k.type = :p_type AND k.n = :v_n AND :v_full_scan = 0 AND :v_scans = 1
            UNION ALL
            SELECT 32768, NULL, NULL FROM rdb$database
            ORDER BY 1, 2, 3
            INTO v_end, v_next_run_at, v_next_id
        DO
        BEGIN
            IF (v_left > 0 AND v_end > v_priority) THEN
                FOR SELECT id, attempt, priority, run_at
                    FROM imq_take_ready(:p_type, :v_priority, :v_from_run_at, :v_from_id, :v_end, :v_left,
                        IIF(:v_full_scan = 1 OR :v_scans = 2, 0, 1))
                    INTO id, attempt, v_found_priority, v_found_run_at
                DO
                BEGIN
                    IF (v_found_priority > v_last_priority) THEN
                    BEGIN
                        v_last_priority = v_found_priority;
                        IF (v_full_scan = 1 AND v_milliseconds IS NULL) THEN
                            v_milliseconds = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
                        -- Record the full scan, a moved first message, or a priority that may have a mark but has none.
                        IF (v_full_scan = 1 OR v_scans = 2 OR v_found_priority = v_priority AND ABS(id - v_id) > c_stride
                            OR v_found_priority > v_priority AND v_segment <= c_marks)
                        THEN
                            v_marks_changed = 1;
                        IF (CHAR_LENGTH(v_found) < 48 * c_marks AND (v_found_priority = v_priority OR v_segment <= c_marks)) THEN
                            v_found = v_found || LPAD(v_found_priority + 32768, 5, '0') || v_found_run_at || LPAD(id, 19, '0');
                    END
                    v_left = v_left - 1;
                    n = p_size - v_left;
                    SUSPEND;
                END
            -- The next segment starts at its mark, or at the latest allowed time if that is earlier: messages may have
            -- appeared there since. Two claims may have left marks with the same n: the first one of a priority counts.
            IF (v_end > v_priority) THEN
            BEGIN
                v_segment = v_segment + 1;
                v_priority = v_end;
                v_id = v_next_id;
                v_from_run_at = MINVALUE(v_next_run_at, v_lowered_to, DATEADD(-1 SECOND TO v_now));
                v_from_id = IIF(v_from_run_at = v_next_run_at, v_next_id, 0);
                IF (v_lowered_to < v_next_run_at) THEN
                    v_marks_changed = 1;
            END
        END
        v_scans = IIF(v_scans = 1 AND v_full_scan = 0 AND v_left = p_size, 2, 0);
    END

    IF (v_full_scan = 1) THEN
    BEGIN
        v_milliseconds = COALESCE(v_milliseconds, DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now()));
        v_scanned_at = DATEADD(MINVALUE(10 * v_milliseconds, 5000) MILLISECOND TO v_now);
    END
    ELSE IF (v_left > 0 AND v_now > DATEADD(20 MILLISECOND TO v_scanned_at)) THEN
    BEGIN
        v_scanned_at = c_long_ago;
        v_marks_changed = 1;
    END
    IF (v_marks_changed = 1) THEN
        EXECUTE PROCEDURE imq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to, v_found, c_long_ago, v_lowered_to, v_full_scan);
    ELSE IF (v_full_scan = 1 AND v_n IS NOT NULL AND v_milliseconds > c_long_scan) THEN
        -- Nothing is ready: move all marks up to now.
        EXECUTE PROCEDURE imq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to, '', v_now, v_lowered_to, 1);
END
