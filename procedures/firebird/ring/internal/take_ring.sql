-- take_ring: move ready messages of a ring into a batch in order of id, and skip messages that another transaction has
--            locked.
-- Arguments:   p_batch_key and p_n (key and number of messages of the batch so far; NULL and 0: it begins), p_size (maximum
--              number of messages in the batch; 1: the caller stores the message), p_after and p_until (ids above p_after, up
--              to p_until)
-- Returns:     batch_key and n (of the batch now), last_id and attempt (of the last message taken; NULL: nothing was found)
CREATE OR ALTER PROCEDURE imq_take_ring (
    p_batch_key mq_key, p_n integer, p_size integer, p_type mq_name, p_after bigint, p_until bigint
)
RETURNS (batch_key mq_key, n integer, last_id bigint, attempt smallint)
AS
DECLARE v_id bigint;
DECLARE v_attempt smallint;
DECLARE v_mine integer;
BEGIN
    batch_key = p_batch_key;
    n = p_n;
    FOR SELECT r.id, r.attempts + 1 AS attempt
        FROM mq_ready AS r
        WHERE r.type = :p_type AND r.lane IS NULL AND r.id > :p_after AND r.id <= :p_until
        PLAN (r ORDER mq_ready_lane)
        ORDER BY r.type, r.lane, r.id
        /*!5 WITH LOCK SKIP LOCKED */
        INTO v_id, v_attempt AS CURSOR c
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
            IF (n = 0) THEN
                batch_key = LOWER(UUID_TO_CHAR(GEN_UUID()));
            n = n + 1;
            last_id = v_id;
            attempt = v_attempt;
            IF (p_size > 1) THEN
                INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :v_id, :n, :v_attempt);
            IF (n >= p_size) THEN
                LEAVE;
        END
    END
END
