-- claim_any: claim up to p_size ready messages of the first type of a list that has any, under one new batch key.
-- Arguments:   p_types (1 to 1,000 types, one per line, in the format of send_batch), p_size (1 to 10,000; NULL: 1), p_consumer
--              (1 to 200 characters; NULL: the application name), p_lease_seconds (1 to 86,400; NULL: the queue's)
-- Returns:     as claim_batch; all rows have the same type
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_any('email' || ASCII_CHAR(10) || 'invoice', 10, 'worker-1', 60);
--
-- The types are tried in the order of the list: callers rotate it. A claim of a limited queue takes locks, so a limited queue
-- that has nothing ready is skipped, unless a claim has set a mark within the last second: a search without the mark may
-- read many dead rows.
CREATE OR ALTER PROCEDURE mq_claim_any (
    p_types mq_text,
    p_size bigint = NULL,
    p_consumer mq_argument = NULL,
    p_lease_seconds bigint = NULL
)
RETURNS (
    id bigint, type mq_name, body mq_text, headers mq_text, priority integer, group_key mq_name, dedup_key mq_name,
    attempt integer, created_at timestamp, source mq_name, batch_key mq_key, lease_until timestamp,
    max_attempts integer, run_at timestamp, extra mq_text
)
AS
DECLARE v_most integer;
DECLARE v_type mq_name;
DECLARE v_limits integer;
DECLARE v_claims smallint;
DECLARE v_scanned_at timestamp; DECLARE v_next_run_at timestamp;
DECLARE v_reason varchar(7) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 1);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_read_committed;
    FOR SELECT t.type FROM imq_read_types(:p_types) AS t INTO v_type DO
    BEGIN
        v_claims = 1;
        SELECT max_active + rate FROM imq_policy(:v_type) INTO v_limits;
        IF (v_limits > 0) THEN
        BEGIN
            v_scanned_at = NULL;
            SELECT scanned_at FROM mq_mark WHERE type = :v_type ORDER BY type DESC, n DESC ROWS 1 INTO v_scanned_at;
            IF (v_scanned_at IS NULL OR DATEADD(1 SECOND TO v_scanned_at) < mq_utc_now()) THEN
                EXECUTE PROCEDURE mq_wait_for_message(v_type) RETURNING_VALUES v_claims, v_next_run_at, v_reason;
        END
        IF (v_claims = 1) THEN
            EXECUTE PROCEDURE imq_claim(v_type, COALESCE(p_size, 1), p_consumer, p_lease_seconds)
                RETURNING_VALUES batch_key, lease_until, v_most;
        IF (batch_key IS NOT NULL) THEN
            LEAVE;
    END
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
