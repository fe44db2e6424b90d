-- fail_message: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up. One
--               that was cancelled is deleted. The caller wakes consumers after its last call.
-- Arguments:   p_type, p_consumer, p_id, p_attempt (the number of this attempt), p_retry (seconds; NULL: the policy's
--              backoff; -1: dead-letter it now), p_error (cut to 4,000 characters)
-- Returns:     state: N or E; NULL: it is deleted
CREATE OR ALTER PROCEDURE imq_fail_message (
    p_type mq_name, p_consumer mq_name, p_id bigint, p_attempt integer, p_retry integer, p_error mq_error
)
RETURNS (state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_max_attempts integer; DECLARE v_backoff integer; DECLARE v_backoff_max integer;
DECLARE v_ordered smallint; DECLARE v_grouped smallint; DECLARE v_stops smallint; DECLARE v_priority smallint;
DECLARE v_group_key mq_name; DECLARE v_error_group mq_name;
DECLARE v_delay double precision;
DECLARE v_until timestamp;
DECLARE v_gone integer;
BEGIN
    SELECT max_attempts, backoff_seconds, backoff_max_seconds, ordered, grouped
    FROM imq_policy(:p_type)
    INTO v_max_attempts, v_backoff, v_backoff_max, v_ordered, v_grouped;
    EXECUTE PROCEDURE imq_drop_cancelled(p_type, p_id, v_grouped) RETURNING_VALUES v_gone;
    IF (v_gone = 1) THEN
        EXIT;
    SELECT COALESCE(max_attempts, :v_max_attempts), priority, group_key FROM mq_message WHERE id = :p_id
    INTO v_max_attempts, v_priority, v_group_key;
    -- Random jitter, half to all of the backoff: messages that failed together are retried at different times.
    v_delay = COALESCE(p_retry, MINVALUE(v_backoff_max, v_backoff * POWER(2e0, MINVALUE(p_attempt - 1, 40)))
        * (0.5e0 + RAND() / 2));
    WHILE (state IS NULL) DO
    BEGIN
        IF (p_retry = -1 OR p_attempt >= v_max_attempts) THEN
        BEGIN
            v_error_group = imq_error_group(p_error);
            INSERT INTO mq_dead (id, died_at, attempts, type, consumer, error, error_group, error_hash, n)
            VALUES (:p_id, mq_utc_now(), :p_attempt, :p_type, :p_consumer, :p_error, :v_error_group, HASH(:v_error_group),
                NEXT VALUE FOR mq_dead_n);
            state = 'E';
        END
        ELSE
        BEGIN
            INSERT INTO mq_delayed (id, type, run_at, priority, attempts, error)
            VALUES (:p_id, :p_type, DATEADD(CAST(:v_delay * 1000 AS bigint) MILLISECOND TO mq_utc_now()), :v_priority,
                :p_attempt, :p_error);
            state = 'N';
        END
        -- The id was here before. Its index entry lives a moment longer than its row, whose place another transaction may
        -- already have taken: a transaction that does not wait then meets a unique violation.
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
    -- In an ordered queue a message that will be retried blocks its group, and so does a dead letter that stops its own.
    IF (v_ordered = 1 AND state = 'E' AND v_group_key IS NOT NULL) THEN
    BEGIN
        EXECUTE PROCEDURE imq_hold_place(p_type, v_group_key, p_id);
        -- Only now: set_queue has changed the setting before, or waits for this transaction and sees the dead letter.
        SELECT dead_stops_group FROM imq_policy(:p_type) INTO v_stops;
        IF (v_stops = 1) THEN
            EXIT;
    END
    IF (v_grouped = 1 AND (v_ordered = 0 OR state = 'E')) THEN
        EXECUTE PROCEDURE imq_free_groups(p_type, v_group_key, p_id);
END
