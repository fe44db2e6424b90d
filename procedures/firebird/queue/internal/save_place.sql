-- save_place: note where a reader of a ring stopped, and delete the places before it.
-- Arguments:   p_type, p_reader ('': the low-water mark), p_n (the round) and p_after_id, p_low_until and p_promoted_to (of a
--              low-water mark; else NULL), p_old_n and p_old_after_id (the place before; NULL: there was none), p_rounds (delete
--              the places of so many rounds before that one; 0: those of its own round, up to p_past ids before it)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; passes over a place that another claim is deleting
-- Example:     EXECUTE PROCEDURE mq_save_place('crawl', 'worker-1', 3, 170, NULL, NULL, 3, 160, 0, 200);
--
-- A place is inserted, not updated, as in mq_mark: nobody meets another's lock, and of two claims of one reader that began at the
-- same place the one that went further counts.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_save_place (
    p_type mq_name,
    p_reader mq_name,
    p_n bigint,
    p_after_id bigint,
    p_low_until timestamp,
    p_promoted_to timestamp,
    p_old_n bigint,
    p_old_after_id bigint,
    p_rounds integer,
    p_past bigint
)
AS
BEGIN
    INSERT INTO mq_ring (type, reader, n, after_id, low_until, promoted_to)
    VALUES (:p_type, :p_reader, :p_n, :p_after_id, :p_low_until, :p_promoted_to);
    IF (p_rounds > 0) THEN
        FOR SELECT n FROM mq_ring WHERE type = :p_type AND reader = :p_reader AND n BETWEEN (:p_old_n - :p_rounds) AND :p_old_n
            INTO p_n AS CURSOR rounds
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF rounds;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                p_n = NULL;
        END
    ELSE
        FOR SELECT n
            FROM mq_ring
            WHERE type = :p_type AND reader = :p_reader AND n = :p_old_n
                AND after_id BETWEEN :p_old_after_id - :p_past AND :p_old_after_id
            INTO p_n AS CURSOR places
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF places;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                p_n = NULL;
        END
END^

SET TERM ; ^
