-- group_tokens: how many tokens the bucket of a group has, and when it gets the next one.
-- Arguments:   p_type, p_group_key ('' for none), p_rate, p_seconds (the policy)
-- Returns:     tokens (NULL: another transaction has locked the bucket or is rolling it back); token_at: when the next
--              token comes, if there is none
-- Transaction: joins the caller's, which has called lock_group; keeps the bucket locked
CREATE OR ALTER PROCEDURE imq_group_tokens (p_type mq_name, p_group_key mq_name, p_rate integer, p_seconds integer)
RETURNS (tokens integer, token_at timestamp)
AS
DECLARE v_locked integer;
DECLARE v_full_at bigint; DECLARE v_holder bigint; DECLARE v_now bigint; DECLARE v_latest bigint;
BEGIN
    EXECUTE PROCEDURE imq_try_lock('bucket', NULL, p_type, p_group_key) RETURNING_VALUES v_locked, v_full_at, v_holder;
    IF (v_locked = 0) THEN
        EXIT;
    IF (v_locked IS NULL) THEN
        INSERT INTO mq_bucket (type, group_key, full_at) VALUES (:p_type, :p_group_key, 0);
    v_now = imq_microseconds();
    tokens = imq_tokens(v_full_at, p_rate, p_seconds, v_now);
    v_latest = v_now + p_seconds * 1000000;
    IF (v_full_at > v_latest) THEN
        -- As in allowance: the clock was set back, or the period is shorter now.
        UPDATE mq_bucket SET full_at = :v_latest WHERE type = :p_type AND group_key = :p_group_key;
    IF (tokens = 0) THEN
        token_at = imq_token_at(v_full_at, p_rate, p_seconds, v_now);
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
        GDSCODE unique_key_violation, GDSCODE no_dup DO
        tokens = NULL;
END
