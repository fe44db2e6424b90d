-- get_message: claim the first ready message, with the queue's lease.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     one message; no row when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_get_message('email');

CREATE OR ALTER PROCEDURE mq_get_message (
    p_type mq_argument
)
RETURNS (
    id bigint, type mq_name, body mq_text, headers mq_text, priority integer, group_key mq_name, dedup_key mq_name,
    attempt integer, created_at timestamp, source mq_name, batch_key mq_key, lease_until timestamp,
    max_attempts integer, run_at timestamp, extra mq_text
)
AS
DECLARE v_most integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_claim(p_type, 1, NULL, NULL) RETURNING_VALUES batch_key, lease_until, v_most;
    FOR SELECT b.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, b.attempt, m.created_at, m.source,
            COALESCE(m.max_attempts, :v_most), m.run_at
        FROM mq_batch AS b
        LEFT JOIN mq_message AS m ON m.id = b.id
        WHERE b.batch_key = :batch_key
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source,
            max_attempts, run_at
    DO
        SUSPEND;
END
