-- take_ready: delete ready messages in claim order, and skip messages that another transaction has locked.
-- Arguments:   p_type, p_priority, p_run_at, p_id and p_end (start and end of the scan, see walk_ready), p_size (maximum
--              number of messages), p_jump (0: try every row)
-- Returns:     the deleted rows: id, priority, run_at and the number of the new attempt
-- Transaction: the caller fetches all rows
--
-- A locked row costs ten times as much as a free one: eight claims that try the same rows one after the other are slower
-- than one claim. So a claim that meets locked rows jumps ahead in claim order, by one row, then two, then four, until it
-- finds a free one. If the claim found too few messages, it tries the skipped rows at the end. Otherwise the next claims
-- try them, and each second a full scan tries every row.
--
-- One row at a time, each in a block of its own: a lock conflict undoes only that block. SKIP LOCKED also skips a row that
-- another claim has taken and committed since this call began, where earlier versions restart the whole call. DELETE and
-- cursors are the forms of SKIP LOCKED that lose no rows in tests. DELETE writes one row version instead of two.
CREATE OR ALTER PROCEDURE imq_take_ready (
    p_type mq_name, p_priority integer, p_run_at timestamp, p_id bigint, p_end integer, p_size integer, p_jump smallint
)
RETURNS (id bigint, attempt smallint, priority smallint, run_at timestamp)
AS
DECLARE v_pass integer = 1;
DECLARE c_longest integer = 1024;
DECLARE v_step integer = 1;
DECLARE v_over integer = 0;
DECLARE v_skipped integer = 0;
DECLARE v_mine integer;
DECLARE v_place char(8) CHARACTER SET OCTETS;
BEGIN
    WHILE (v_pass <= 2 AND p_size > 0) DO
    BEGIN
        FOR SELECT id, attempt, priority, run_at, place
            FROM imq_walk_ready(:p_type, :p_priority, :p_run_at, :p_id, :p_end)
            INTO id, attempt, priority, run_at, v_place
        DO
        BEGIN
            IF (v_over > 0) THEN
            BEGIN
                v_over = v_over - 1;
                v_skipped = 1;
            END
            ELSE
            BEGIN
                v_mine = 0;
                BEGIN
                    DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :id AND type = :p_type /*!5 SKIP LOCKED */
                    RETURNING 1 INTO v_mine;
                    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                        v_mine = 0;
                END
                IF (v_mine = 1) THEN
                BEGIN
                    SUSPEND;
                    p_size = p_size - 1;
                    v_step = 1;
                    IF (p_size <= 0) THEN
                        LEAVE;
                END
                ELSE IF (p_jump = 1) THEN
                BEGIN
                    v_over = v_step - 1;
                    v_step = MINVALUE(2 * v_step, c_longest);
                END
            END
        END
        v_pass = IIF(v_skipped = 1, v_pass + 1, 3);
        v_over = 0;
        p_jump = 0;
    END
END
