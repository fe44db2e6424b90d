-- take_ring: delete ready messages in the order of their ids, passing over those that another transaction has locked.
-- Arguments:   p_type, p_after and p_until (ids above the one, up to the other), p_size (at most so many)
-- Returns:     the rows that were deleted: id and the number of the attempt that begins
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; the caller fetches all rows
-- Example:     FOR SELECT id, attempt FROM mq_take_ring('crawl', 17, 9223372036854775807, 10) INTO v_id, v_attempt DO ...
--
-- take_ring.5.sql is the body for Firebird 5.0 and later.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_take_ring (
    p_type mq_name,
    p_after bigint,
    p_until bigint,
    p_size integer
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
DECLARE v_mine integer;
BEGIN
    FOR SELECT r.id, r.attempts + 1 AS attempt
        FROM mq_ready AS r
        WHERE r.type = :p_type AND r.id > :p_after AND r.id <= :p_until
        PLAN (r ORDER mq_ready_ring)
        ORDER BY r.type, r.id
        INTO id, attempt AS CURSOR c
    DO
    BEGIN
        BEGIN
            DELETE FROM mq_ready WHERE CURRENT OF c;
            v_mine = 1;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_mine = 0;
        END
        IF (v_mine = 1) THEN
        BEGIN
            SUSPEND;
            p_size = p_size - 1;
            IF (p_size <= 0) THEN
                LEAVE;
        END
    END
END^

SET TERM ; ^
