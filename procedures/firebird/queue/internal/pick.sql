-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued, due
--       messages promoted and those of schedules sent on the way.
-- Arguments:   p_type, p_size, p_grouped (the policy), p_take (1: the caller's transaction may be long: see pick_grouped)
-- Returns:     id and attempt (the number of this attempt)
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; the caller fetches all rows
-- Example:     FOR SELECT id, attempt FROM mq_pick('email', 10, 0, 0) INTO v_id, v_attempt DO ...
--
-- Low-water marks. Under an open snapshot nothing that is deleted can be cleaned up, and a claim that starts at the front of the
-- index scans every message done since. So claims start where earlier claims began to find something: mq_mark holds one such
-- place per priority. Each mark starts a segment that ends before the next mark, and before the first mark lies one more
-- segment. So priorities without a mark are scanned as well, from their start.
--
-- No message is passed over for longer than a second. What is put back or becomes due below a mark lowers it. Two messages can
-- still appear below a mark unseen: one whose sender commits late, and one whose take rolls back. For the first, no segment
-- starts later than a second ago. For both, the first claim of each second is a full scan: it ignores the marks and reads the
-- type from its very start. After a full scan that took long, where the dead rows are many, the next one comes ten times as long
-- after, at most 5 seconds. docs/how-a-claim-works.md has a drawing.
--
-- The engine may begin a claim again, and what it had before then lies below the marks. So a claim that finds nothing makes a full
-- scan at once, and one that comes short asks the next claim for one.
--
-- It is long because a helper between it and take_ready would cost each message as much again as reading it.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pick (
    p_type mq_name,
    p_size integer,
    p_grouped smallint,
    p_take smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
-- A mark is renewed when the front has moved by so many ids.
DECLARE c_stride integer = 1000;
-- Every mark costs a scan in each claim that comes short. Priorities after the eighth are never learned.
DECLARE c_marks integer = 8;
-- A full scan that took so many milliseconds and found nothing has read dead rows: idle consumers need not do it all the time.
DECLARE c_long_scan integer = 5;
DECLARE c_long_ago timestamp = '1900-01-01';
DECLARE v_now timestamp;
DECLARE v_n bigint;
DECLARE v_scanned_at timestamp;
DECLARE v_promoted_to timestamp;
DECLARE v_full_scan smallint = 1;
DECLARE v_marks_changed smallint = 0;
DECLARE v_left integer;
DECLARE v_promote integer;
DECLARE v_moved bigint;
DECLARE v_lowered_to timestamp;
DECLARE v_scans integer = 1;
DECLARE v_begun timestamp;
DECLARE v_milliseconds integer;
DECLARE v_segment integer;
DECLARE v_priority integer;
DECLARE v_from_run_at timestamp;
DECLARE v_from_id bigint;
DECLARE v_id bigint;
DECLARE v_end integer;
DECLARE v_next_run_at timestamp;
DECLARE v_next_id bigint;
DECLARE v_found_priority smallint;
DECLARE v_found_run_at timestamp;
DECLARE v_last_priority integer = -32769;
-- The first row found of each priority: five characters for the priority + 32768, 24 for the time, 19 for the id.
DECLARE v_found varchar(400) CHARACTER SET ASCII = '';
BEGIN
    v_now = mq_utc_now();
    v_left = p_size;
    v_promote = IIF(p_take = 1, p_size, MAXVALUE(2 * p_size, 100));
    v_lowered_to = CAST('9999-12-31' AS timestamp);
    SELECT n FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1 INTO v_n;
    IF (v_n IS NOT NULL) THEN
    BEGIN
        SELECT MIN(scanned_at), MIN(promoted_to) FROM mq_mark WHERE type = :p_type AND n = :v_n
        INTO v_scanned_at, v_promoted_to;
        -- The time of a scan may lie ahead by 5 seconds; by more, or with what was promoted ahead, the clock was set back.
        IF (v_now BETWEEN DATEADD(-6 SECOND TO v_scanned_at) AND DATEADD(1 SECOND TO v_scanned_at)
            AND v_promoted_to <= v_now) THEN
            v_full_scan = 0;
    END
    IF (v_full_scan = 1) THEN
    BEGIN
        -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
        IF (EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now)) THEN
            EXECUTE PROCEDURE mq_rescue(p_type, IIF(p_take = 1, 1, 20)) RETURNING_VALUES v_moved;
        IF (EXISTS (SELECT * FROM mq_schedule WHERE type = :p_type)) THEN
            EXECUTE PROCEDURE mq_send_due(p_type, v_promote);
        v_promoted_to = c_long_ago;
    END

    IF (EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at > :v_promoted_to AND run_at <= :v_now)) THEN
    BEGIN
        EXECUTE PROCEDURE mq_promote(p_type, v_promoted_to, v_now, v_promote, p_grouped) RETURNING_VALUES v_moved, v_next_run_at;
        v_lowered_to = COALESCE(v_next_run_at, v_lowered_to);
        v_promoted_to = IIF(v_moved < v_promote, v_now, c_long_ago);
    END
    ELSE
        v_promoted_to = v_now;

    IF (p_grouped = 1) THEN
    BEGIN
        IF (v_full_scan = 1 AND p_take = 0) THEN
            EXECUTE PROCEDURE mq_tend_groups(p_type);
        FOR SELECT id, attempt FROM mq_pick_grouped(:p_type, :p_size, :p_take) INTO id, attempt DO
        BEGIN
            v_left = v_left - 1;
            SUSPEND;
        END
        IF (v_full_scan = 1 AND v_left < p_size) THEN
            -- No claim of tickets begins at a mark. They only say when the last full scan was.
            EXECUTE PROCEDURE mq_renew_marks(p_type, v_n, v_now, c_long_ago, '', c_long_ago, v_lowered_to, 1);
        IF (v_full_scan = 1 AND p_take = 0) THEN
            EXECUTE PROCEDURE mq_forget_buckets(p_type);
        EXIT;
    END

    WHILE (v_scans > 0) DO
    BEGIN
        v_begun = IIF(v_full_scan = 1, mq_utc_now(), NULL);
        v_segment = 1;
        v_priority = -32769;
        v_from_run_at = NULL;
        -- The segment of a full scan is the only one.
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
                    FROM mq_take_ready(:p_type, :v_priority, :v_from_run_at, :v_from_id, :v_end, :v_left,
                        IIF(:v_full_scan = 1 OR :v_scans = 2, 0, 1))
                    INTO id, attempt, v_found_priority, v_found_run_at
                DO
                BEGIN
                    IF (v_found_priority > v_last_priority) THEN
                    BEGIN
                        v_last_priority = v_found_priority;
                        IF (v_full_scan = 1 AND v_milliseconds IS NULL) THEN
                            v_milliseconds = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
                        -- A full scan is noted, the front has moved, or there is a priority that may have a mark and has none.
                        IF (v_full_scan = 1 OR v_scans = 2 OR v_found_priority = v_priority AND ABS(id - v_id) > c_stride
                            OR v_found_priority > v_priority AND v_segment <= c_marks)
                        THEN
                            v_marks_changed = 1;
                        IF (CHAR_LENGTH(v_found) < 48 * c_marks AND (v_found_priority = v_priority OR v_segment <= c_marks)) THEN
                            v_found = v_found || LPAD(v_found_priority + 32768, 5, '0') || v_found_run_at || LPAD(id, 19, '0');
                    END
                    v_left = v_left - 1;
                    SUSPEND;
                END
            -- The next segment begins at the mark, or before it, where a message may have appeared since. Two claims may have left
            -- marks of one number: the first of a priority counts.
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
        EXECUTE PROCEDURE mq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to, v_found, c_long_ago, v_lowered_to, v_full_scan);
    ELSE IF (v_full_scan = 1 AND v_n IS NOT NULL AND v_milliseconds > c_long_scan) THEN
        -- Nothing is ready: all marks move up to now.
        EXECUTE PROCEDURE mq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to, '', v_now, v_lowered_to, 1);
END^

SET TERM ; ^
