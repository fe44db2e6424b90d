-- save_position: save the position of a round-robin reader, and delete its older positions.
-- Arguments:   p_type, p_reader, p_size (of the claim), p_n and p_after_id (the round and the last id), p_old_n and
--              p_old_after_id (the position that the claim read; NULL: there was none)
-- Transaction: joins the caller's, which is NO WAIT; never waits for another claim
--
-- A position is inserted, not updated: no session meets a lock. When two claims of one reader start at the same position,
-- the position further ahead counts, in whichever order they commit.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_save_position (
    p_type mq_name,
    p_reader mq_name,
    p_size integer,
    p_n bigint,
    p_after_id bigint,
    p_old_n bigint,
    p_old_after_id bigint
)
AS
-- Delete positions up to this many claims back: concurrent claims of this reader may have left some.
DECLARE c_claims integer = 20;
BEGIN
    INSERT INTO mq_ring (type, reader, n, after_id) VALUES (:p_type, :p_reader, :p_n, :p_after_id);
    IF (p_n = p_old_n) THEN
        FOR SELECT n
            FROM mq_ring
            WHERE type = :p_type AND reader = :p_reader AND n = :p_old_n
                AND after_id BETWEEN :p_old_after_id - :c_claims * :p_size AND :p_old_after_id
            INTO p_n AS CURSOR old
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF old;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                p_n = NULL;
        END
    ELSE
        -- At the end of a round, delete all remaining positions of the last two rounds.
        FOR SELECT n FROM mq_ring WHERE type = :p_type AND reader = :p_reader AND n BETWEEN :p_old_n - 1 AND :p_old_n
            INTO p_n AS CURSOR past
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF past;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                p_n = NULL;
        END
END^

SET TERM ; ^
