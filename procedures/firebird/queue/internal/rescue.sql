-- rescue: rescue up to p_batches expired claims of a type: make their messages ready again, or dead-letter them when their
--         attempts are used up.
-- Transaction: joins the caller's, which is NO WAIT; skips claims that another call is finishing or extending, and
--              those with a message of which an open transaction has saved a step
CREATE OR ALTER PROCEDURE imq_rescue (p_type mq_name, p_batches integer)
RETURNS (rescued bigint)
AS
DECLARE v_now timestamp;
DECLARE v_max_attempts integer; DECLARE v_mine integer; DECLARE v_limit integer;
DECLARE v_grouped smallint; DECLARE v_attempt smallint; DECLARE v_held smallint;
DECLARE v_key mq_key;
DECLARE v_consumer mq_name;
DECLARE v_id bigint;
DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    v_now = mq_utc_now();
    rescued = 0;
    SELECT max_attempts, grouped FROM imq_policy(:p_type) INTO v_max_attempts, v_grouped;
    FOR SELECT batch_key, consumer
        FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now
        PLAN (mq_batch ORDER mq_batch_lease)
        ORDER BY type, lease_until
        INTO v_key, v_consumer
    DO
    BEGIN
        EXECUTE PROCEDURE imq_is_held(v_key) RETURNING_VALUES v_held;
        v_mine = 0;
        IF (v_held = 0) THEN
        BEGIN
            -- Check the lease again: a heartbeat may have extended it.
            v_id = NULL;
            DELETE FROM mq_batch WHERE batch_key = :v_key AND lease_until <= :v_now RETURNING id, attempt INTO v_id, v_attempt;
            v_mine = ROW_COUNT;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_mine = 0;
        END
        IF (v_mine = 1) THEN
        BEGIN
            IF (v_id IS NOT NULL) THEN
                INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:v_key, :v_id, 1, :v_attempt);
            FOR SELECT id, attempt FROM mq_claimed WHERE batch_key = :v_key ORDER BY batch_key, id
                INTO v_id, v_attempt AS CURSOR c
            DO
            BEGIN
                v_limit = NULL;
                SELECT COALESCE(max_attempts, :v_max_attempts) FROM mq_message WHERE id = :v_id INTO v_limit;
                -- A message with attempts left becomes ready at once, at the position where it was sent. The others are
                -- dead-lettered.
                IF (v_attempt < v_limit) THEN
                    EXECUTE PROCEDURE imq_put_back(p_type, v_id, v_attempt, v_grouped);
                ELSE
                    EXECUTE PROCEDURE imq_fail_message(p_type, v_consumer, v_id, v_attempt, -1,
                        'lease expired: the consumer died or was too slow') RETURNING_VALUES v_state;
                DELETE FROM mq_claimed WHERE CURRENT OF c;
                rescued = rescued + 1;
            END
            p_batches = p_batches - 1;
        END
        IF (p_batches = 0) THEN
            LEAVE;
    END
    IF (rescued > 0) THEN
    BEGIN
        EXECUTE PROCEDURE imq_lower_mark(p_type);
        EXECUTE PROCEDURE imq_wake(p_type);
    END
END
