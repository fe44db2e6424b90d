-- leave_place: remove a message of state N from mq_ready or mq_delayed, if its run_at is earlier than p_before.
-- Arguments:   p_type, p_grouped (the policy), p_id, p_group_key ('' for none), p_before, p_run_at (the message's own; in a
--              grouped queue it is compared with p_before if the message is due)
-- Returns:     attempts (NULL: nothing was removed, or another transaction is claiming the message) and error of the last
--              attempt
-- Transaction: joins the caller's, which is NO WAIT

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_leave_place (
    p_type mq_name,
    p_grouped smallint,
    p_id bigint,
    p_group_key mq_name,
    p_before timestamp,
    p_run_at timestamp
)
RETURNS (
    attempts smallint,
    error mq_error
)
AS
DECLARE v_run_at timestamp;
BEGIN
    -- The delayed table first: a claim may be promoting the message.
    BEGIN
        DELETE FROM mq_delayed WHERE id = :p_id AND run_at < :p_before RETURNING attempts, error INTO attempts, error;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NULL AND p_grouped = 0) THEN
    BEGIN
        DELETE FROM mq_ready WHERE type = :p_type AND id = :p_id AND run_at < :p_before PLAN (mq_ready INDEX (mq_ready_ring))
        RETURNING attempts INTO attempts;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NULL AND p_grouped = 1 AND p_run_at < p_before) THEN
    BEGIN
        DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id RETURNING attempts INTO attempts;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NOT NULL AND p_grouped = 1) THEN
        -- The tickets of the message.
        FOR SELECT r.run_at
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.id = :p_id
            PLAN (r ORDER mq_ready_ring)
            ORDER BY r.type, r.id
            INTO v_run_at AS CURSOR c
        DO
        BEGIN
            DELETE FROM mq_ready WHERE CURRENT OF c;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_run_at = NULL;
        END
END^

SET TERM ; ^
