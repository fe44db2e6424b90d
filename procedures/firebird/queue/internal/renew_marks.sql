-- renew_marks: write the low-water marks that a claim leaves; after a full scan, delete those before them.
-- Arguments:   p_type, p_n (the number of the marks that the claim read; NULL: there were none), p_scanned_at (the last full
--              scan), p_promoted_to (nothing due before is left to promote), p_found (the first row found of each priority: 48
--              characters each, see pick), p_at_least and p_at_most (run_at of the marks of other priorities from now on),
--              p_full_scan (1: the claim was one)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; never waits for another claim
-- Example:     EXECUTE PROCEDURE mq_renew_marks('email', 17, v_now, v_now, '', '1900-01-01', '9999-12-31', 1);
--
-- The first row found of a priority is its mark. A priority of which nothing was found keeps the mark that it had. Marks
-- are inserted, never updated: the newest are the first index entries, however many dead ones lie after them.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_renew_marks (
    p_type mq_name,
    p_n bigint,
    p_scanned_at timestamp,
    p_promoted_to timestamp,
    p_found varchar(400) CHARACTER SET ASCII,
    p_at_least timestamp,
    p_at_most timestamp,
    p_full_scan smallint
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
        -- A mark at the very start marks nothing, but says when the last full scan was.
        INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (:p_type, :v_n, -32768, :c_long_ago, 0, :p_scanned_at, :p_promoted_to);
    -- Once a second, for two claims that delete the same mark cost one of them a second run. A mark that another claim is
    -- deleting stays until a later one passes by: they are few and never read.
    IF (p_full_scan = 1) THEN
        FOR SELECT n FROM mq_mark WHERE type = :p_type AND n < :p_n INTO v_n AS CURSOR old DO
        BEGIN
            DELETE FROM mq_mark WHERE CURRENT OF old;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_n = NULL;
        END
END^

SET TERM ; ^
