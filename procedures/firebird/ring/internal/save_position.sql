-- save_position: save where the next turn begins, of a round-robin consumer or of a priority of a fair queue; delete older rows.
-- Arguments:   p_type, p_consumer, p_old_n (of the position that the claim read; NULL: there was none), p_passed (1: the claim
--              has passed the end, or it got the place to start at as an argument), p_after_id, p_lane
-- Transaction: joins the caller's, which is NO WAIT; never waits for another claim
--
-- A position is inserted, not updated: no session meets a lock. When two claims start at the same position, the position
-- further ahead counts, in whichever order they commit: each round begins with a much higher n.
CREATE OR ALTER PROCEDURE imq_save_position (
    p_type mq_name, p_consumer mq_name, p_old_n bigint, p_passed smallint, p_after_id bigint, p_lane mq_lane
)
AS
-- Delete positions up to this many claims back: concurrent claims may have left some. At the end of a round, delete all.
DECLARE c_claims integer = 20;
DECLARE c_round integer = 1000000;
DECLARE v_n bigint;
BEGIN
    INSERT INTO mq_ring (type, consumer, n, after_id, lane)
    VALUES (:p_type, :p_consumer, COALESCE(:p_old_n, 0) + IIF(:p_passed = 1, :c_round, 1), :p_after_id, :p_lane);
    FOR SELECT n
        FROM mq_ring
        WHERE type = :p_type AND consumer = :p_consumer
            AND n BETWEEN :p_old_n - IIF(:p_passed = 1, :c_round, :c_claims) AND :p_old_n
        INTO v_n AS CURSOR old
    DO
    BEGIN
        DELETE FROM mq_ring WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_n = NULL;
    END
END
