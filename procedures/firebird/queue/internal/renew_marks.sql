-- renew_marks: write the low-water marks of a claim; after a full scan, delete the older ones.
-- Arguments:   p_type, p_n (the number of the marks that the claim read; NULL: there were none), p_scanned_at (the last
--              full scan), p_promoted_to (no message due before this time is delayed), p_found (the first row found of each
--              priority, 48 characters each, see pick), p_at_least and p_at_most (bounds for the run_at of the marks of all
--              other priorities), p_full_scan (1: the claim was a full scan)
-- Transaction: joins the caller's, which is NO WAIT; never waits for another claim
--
-- The first row found of a priority becomes its mark. A priority without found rows keeps its mark. Marks are inserted,
-- never updated: the newest are the first index entries, before all dead ones.
CREATE OR ALTER PROCEDURE imq_renew_marks (
    p_type mq_name, p_n bigint, p_scanned_at timestamp, p_promoted_to timestamp,
    p_found varchar(400) CHARACTER SET ASCII, p_at_least timestamp, p_at_most timestamp, p_full_scan smallint
)
AS
DECLARE c_marks integer = 8;
DECLARE c_long_ago timestamp = '1900-01-01';
DECLARE v_n bigint;
DECLARE v_marks integer = 0;
DECLARE v_at integer = 1;
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_id bigint;
BEGIN
    v_n = COALESCE(p_n, 0) + 1;
    WHILE (v_at < CHAR_LENGTH(p_found)) DO
    BEGIN
        INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (:p_type, :v_n, CAST(SUBSTRING(:p_found FROM :v_at FOR 5) AS integer) - 32768,
            CAST(SUBSTRING(:p_found FROM :v_at + 5 FOR 24) AS timestamp),
            CAST(SUBSTRING(:p_found FROM :v_at + 29 FOR 19) AS bigint), :p_scanned_at, :p_promoted_to);
        v_marks = v_marks + 1;
        v_at = v_at + 48;
    END
    FOR SELECT k.priority, k.run_at, k.id
        FROM mq_mark AS k
        WHERE k.type = :p_type AND k.n = :p_n AND k.run_at > :c_long_ago
            AND NOT EXISTS (SELECT * FROM mq_mark AS m WHERE m.type = k.type AND m.n = :v_n AND m.priority = k.priority)
        ORDER BY k.priority, k.run_at
        INTO v_priority, v_run_at, v_id
    DO
        IF (v_marks < c_marks) THEN
        BEGIN
            INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
            VALUES (:p_type, :v_n, :v_priority, MINVALUE(MAXVALUE(:v_run_at, :p_at_least), :p_at_most),
                IIF(:v_run_at BETWEEN :p_at_least AND :p_at_most, :v_id, 0), :p_scanned_at, :p_promoted_to);
            v_marks = v_marks + 1;
        END
    IF (v_marks = 0) THEN
        -- A mark at the very start skips nothing; it only records the time of the last full scan.
        INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (:p_type, :v_n, -32768, :c_long_ago, 0, :p_scanned_at, :p_promoted_to);
    -- Only once per second: when two claims delete the same mark, one of them is restarted. Skip marks that another claim
    -- is deleting. Leftover marks are few and never read; a later claim deletes them.
    IF (p_full_scan = 1) THEN
        FOR SELECT n FROM mq_mark WHERE type = :p_type AND n < :p_n INTO v_n AS CURSOR old DO
        BEGIN
            DELETE FROM mq_mark WHERE CURRENT OF old;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_n = NULL;
        END
END
