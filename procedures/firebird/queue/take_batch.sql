-- take_batch: receive and finish messages in one call: a commit removes them, a rollback makes them ready again.
-- Arguments:   p_type (1 to 200 characters), p_size (1 to 10,000; NULL: 1)
-- Returns:     the messages in order of priority, run_at, id; batch_key and lease_until are NULL; no rows when nothing is
--              ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT, does the work and commits; other claims skip
--              the messages that it has taken
-- Example:     SELECT * FROM mq_take_batch('email', 10);
--
-- The call takes all messages before it returns the first row: a caller that fetches only half of the rows has still taken
-- the whole batch. Until then the rows are in a scratch table under a number of this call, because a caller may fetch two
-- calls in parallel. A single message stays in the result variables; its body is copied, because deleting the message
-- deletes its body.

CREATE OR ALTER PROCEDURE mq_take_batch (
    p_type mq_argument,
    p_size bigint = NULL
)
RETURNS (
    id bigint, type mq_name, body mq_text, headers mq_text, priority integer, group_key mq_name, dedup_key mq_name,
    attempt integer, created_at timestamp, source mq_name, batch_key mq_key, lease_until timestamp,
    max_attempts integer, run_at timestamp, extra mq_text
)
AS
DECLARE v_now timestamp;
DECLARE v_paused smallint; DECLARE v_grouped smallint; DECLARE v_fair smallint;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
DECLARE v_consumer mq_name;
DECLARE v_most integer; DECLARE v_size integer; DECLARE v_max_active integer; DECLARE v_rate integer; DECLARE v_rate_seconds integer;
DECLARE v_place integer;
DECLARE v_call bigint;
DECLARE v_n integer = 0;
BEGIN
    v_now = mq_utc_now();
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_read_committed;
    SELECT paused, grouped, fair, on_complete, max_active, rate, rate_seconds, max_attempts FROM imq_policy(:p_type)
    INTO v_paused, v_grouped, v_fair, v_on_complete, v_max_active, v_rate, v_rate_seconds, v_most;
    IF (v_paused = 1) THEN
        EXIT;
    v_size = COALESCE(p_size, 1);
    IF (v_max_active + v_rate > 0) THEN
        EXECUTE PROCEDURE imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds) RETURNING_VALUES v_size;
    IF (v_size = 0) THEN
        EXIT;
    FOR SELECT id, attempt, n FROM imq_pick(:p_type, :v_size, :v_grouped, :v_fair, 1) INTO id, attempt, v_place DO
    BEGIN
        IF (v_size = 1) THEN
            SELECT m.type, m.body || '', m.headers || '', m.priority, m.group_key, m.dedup_key, m.created_at, m.source,
                COALESCE(m.max_attempts, :v_most), m.run_at
            FROM mq_message AS m
            WHERE m.id = :id
            INTO type, body, headers, priority, group_key, dedup_key, created_at, source, max_attempts, run_at;
        ELSE
        BEGIN
            v_call = COALESCE(v_call, id);
            v_n = v_n + 1;
            INSERT INTO mq_taken (call, n, id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source,
                max_attempts, run_at)
            SELECT :v_call, :v_place, m.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, :attempt, m.created_at,
                m.source, COALESCE(m.max_attempts, :v_most), m.run_at
            FROM mq_message AS m
            WHERE m.id = :id;
        END
        v_consumer = COALESCE(v_consumer, imq_consumer_name(NULL));
        -- It took no place in its group.
        EXECUTE PROCEDURE imq_complete_messages(id, attempt, v_consumer, v_on_complete, 0, v_now);
    END
    IF (v_consumer IS NOT NULL) THEN
    BEGIN
        IF (v_rate > 0) THEN
            EXECUTE PROCEDURE imq_spend(p_type, IIF(v_size = 1, 1, v_n), v_rate, v_rate_seconds);
        IF (v_max_active > 0) THEN
            EXECUTE PROCEDURE imq_wake(p_type);
    END
    IF (v_size = 1) THEN
    BEGIN
        IF (v_consumer IS NOT NULL) THEN
            SUSPEND;
        EXIT;
    END
    FOR SELECT t.id, t.type, t.body, t.headers, t.priority, t.group_key, t.dedup_key, t.attempt, t.created_at, t.source,
            t.max_attempts, t.run_at
        FROM mq_taken AS t
        WHERE t.call = :v_call
        ORDER BY t.call, t.n, t.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source, max_attempts, run_at
    DO
        SUSPEND;
END
