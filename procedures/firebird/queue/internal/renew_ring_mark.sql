-- renew_ring_mark: write the low-water mark of a round-robin claim, and delete the older ones.
-- Arguments:   p_type, p_n (the number of the mark that the claim read; NULL: there was none), p_after_id (no message up to
--              this id is ready; NULL: no message is ready at all), p_low_until (how long the mark holds), p_promoted_to
--              (no message due before this time is delayed)
-- Transaction: joins the caller's, which is NO WAIT; never waits for another claim

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_renew_ring_mark (
    p_type mq_name,
    p_n bigint,
    p_after_id bigint,
    p_low_until timestamp,
    p_promoted_to timestamp
)
AS
-- Delete marks up to this many numbers back: concurrent claims may have left some.
-- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
DECLARE c_old integer = 20;
DECLARE v_n bigint;
BEGIN
    INSERT INTO mq_ring (type, reader, n, after_id, low_until, promoted_to)
    VALUES (:p_type, '', COALESCE(:p_n, 0) + 1, COALESCE(:p_after_id, GEN_ID(mq_message_id, 0)), :p_low_until, :p_promoted_to);
    FOR SELECT n FROM mq_ring WHERE type = :p_type AND reader = '' AND n BETWEEN IIF(MOD(:p_n, 100) = 0, 0, :p_n - :c_old) AND :p_n
        INTO v_n AS CURSOR old
    DO
    BEGIN
        DELETE FROM mq_ring WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_n = NULL;
    END
END^

SET TERM ; ^
