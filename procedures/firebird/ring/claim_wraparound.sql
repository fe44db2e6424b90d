-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 wrong_kind (or not a ring, see set_queue)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_wraparound('crawl', 10, 'worker-1');

CREATE OR ALTER PROCEDURE mq_claim_wraparound (
    p_type mq_argument,
    p_size bigint = NULL,
    p_consumer mq_argument = NULL,
    p_lease_seconds bigint = NULL,
    p_after_id bigint = NULL
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
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 1);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_claim(p_type, COALESCE(p_size, 1), p_consumer, p_lease_seconds, 1, p_after_id)
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
