-- finish_batch: complete a batch except for its failures, and claim the next batch, in one transaction.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the message failed; retry_after_seconds: when to
--              retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1 gives it back), p_next_size (0
--              to 10,000; NULL or 0: claim nothing)
-- Returns:     the messages of the next batch, with the columns of claim_batch; no rows when p_next_size is 0 or nothing is
--              ready
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_finish_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}', 100);

CREATE OR ALTER PROCEDURE mq_finish_batch (
    p_batch_key mq_argument,
    p_outcomes mq_text = NULL,
    p_next_size bigint = NULL
)
RETURNS (
    id bigint, type mq_name, body mq_text, headers mq_text, priority integer, group_key mq_name, dedup_key mq_name,
    attempt integer, created_at timestamp, source mq_name, batch_key mq_key, lease_until timestamp,
    max_attempts integer, run_at timestamp, extra mq_text
)
AS
DECLARE v_now timestamp;
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_seconds integer; DECLARE v_max_active integer;
DECLARE v_grouped smallint; DECLARE v_attempt smallint;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
DECLARE v_id bigint;
DECLARE v_failed integer = 0; DECLARE v_released integer = 0;
DECLARE v_retry integer; DECLARE v_most integer;
DECLARE v_error mq_error;
DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    v_now = mq_utc_now();
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_range('next_size', p_next_size, 0, 10000);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_drop_batch(p_batch_key) RETURNING_VALUES v_type, v_consumer, v_seconds, v_id, v_attempt;
    IF (v_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    SELECT grouped, on_complete, max_active FROM imq_policy(:v_type) INTO v_grouped, v_on_complete, v_max_active;
    IF (OCTET_LENGTH(p_outcomes) > 0) THEN
    BEGIN
        FOR SELECT id, retry, error FROM imq_read_outcomes(:p_outcomes) WHERE error IS NOT NULL OR retry = -2
            INTO id, v_retry, v_error
        DO
        BEGIN
            attempt = NULL;
            IF (id = v_id) THEN
            BEGIN
                attempt = v_attempt;
                v_id = NULL;
            END
            ELSE
                DELETE FROM mq_claimed WHERE batch_key = :p_batch_key AND id = :id RETURNING attempt INTO attempt;
            IF (attempt IS NOT NULL AND v_retry = -2) THEN
            BEGIN
                EXECUTE PROCEDURE imq_put_back(v_type, id, attempt - 1, v_grouped);
                v_released = v_released + 1;
            END
            ELSE IF (attempt IS NOT NULL) THEN
            BEGIN
                EXECUTE PROCEDURE imq_fail_message(v_type, v_consumer, id, attempt, v_retry, v_error) RETURNING_VALUES v_state;
                v_failed = v_failed + 1;
            END
        END
        IF (v_released > 0) THEN
            EXECUTE PROCEDURE imq_lower_mark(v_type);
        IF (v_failed + v_released > 0) THEN
            EXECUTE PROCEDURE imq_wake(v_type);
    END
    IF (v_id IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_complete_messages(v_id, v_attempt, v_consumer, v_on_complete, v_grouped, v_now);
    FOR SELECT c.id, c.attempt FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key ORDER BY c.batch_key, c.id
        INTO id, attempt AS CURSOR done
    DO
    BEGIN
        EXECUTE PROCEDURE imq_complete_messages(id, attempt, v_consumer, v_on_complete, v_grouped, v_now);
        DELETE FROM mq_claimed WHERE CURRENT OF done;
    END
    IF (v_max_active > 0) THEN
        EXECUTE PROCEDURE imq_wake(v_type);
    IF (p_next_size > 0) THEN
        EXECUTE PROCEDURE imq_claim(v_type, p_next_size, v_consumer, v_seconds)
            RETURNING_VALUES batch_key, lease_until, v_most;
    -- Sort narrow rows first, then join: the sort carries no bodies.
    FOR SELECT c.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, c.attempt, m.created_at, m.source,
            COALESCE(m.max_attempts, :v_most), m.run_at
        FROM (
            SELECT id, attempt, n FROM mq_claimed WHERE batch_key = :batch_key
            UNION ALL
            SELECT id, attempt, 1 FROM mq_batch WHERE batch_key = :batch_key AND id IS NOT NULL
            ORDER BY 3, 1
        ) AS c
        LEFT JOIN mq_message AS m ON m.id = c.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source,
            max_attempts, run_at
    DO
        SUSPEND;
END
