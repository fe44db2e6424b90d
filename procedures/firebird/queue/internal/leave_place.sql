-- leave_place: remove a message of state N from mq_ready or mq_delayed, if its run_at is earlier than p_before.
-- Arguments:   p_type, p_grouped (the policy), p_id, p_group_key ('' for none), p_before (NULL: any run_at), p_run_at (the
--              message's own; in a grouped queue it is compared with p_before if the message is due)
-- Returns:     attempts (NULL: nothing was removed, or another transaction is claiming the message), error of the last attempt,
--              and due_at: when the place was due (NULL: a due message of a grouped queue)
CREATE OR ALTER PROCEDURE imq_leave_place (
    p_type mq_name, p_grouped smallint, p_id bigint, p_group_key mq_name, p_before timestamp, p_run_at timestamp
)
RETURNS (attempts smallint, error mq_error, due_at timestamp)
AS
DECLARE v_place char(8) CHARACTER SET OCTETS;
BEGIN
    p_before = COALESCE(p_before, CAST('9999-12-31' AS timestamp));
    -- The delayed table first: a claim may be promoting the message.
    BEGIN
        DELETE FROM mq_delayed WHERE id = :p_id AND run_at < :p_before RETURNING attempts, error, run_at
        INTO attempts, error, due_at;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NULL AND p_grouped = 0) THEN
    BEGIN
        FOR SELECT place FROM imq_find_ready(:p_type, :p_id) WHERE run_at < :p_before INTO v_place DO
            DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :p_id RETURNING attempts, run_at
            INTO attempts, due_at;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NULL AND p_grouped = 1 AND COALESCE(p_run_at, CAST('1900-01-01' AS timestamp)) < p_before) THEN
    BEGIN
        DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id RETURNING attempts INTO attempts;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            attempts = NULL;
    END
    IF (attempts IS NOT NULL AND p_grouped = 1) THEN
        -- The tickets of the message.
        FOR SELECT place FROM imq_find_ready(:p_type, :p_id) INTO v_place DO
        BEGIN
            DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :p_id;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_place = NULL;
        END
END
