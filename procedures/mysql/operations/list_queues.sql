-- list_queues: list the policies of queues.
-- Arguments:   p_type (1 to 200 characters; NULL: all for which set_queue, pause or resume was called)
-- Returns:     one row per type with the columns of set_queue; a given p_type without a policy returns the defaults
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_queues(NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_queues(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    CALL imq_require_name('type', p_type, 1);
    SELECT COALESCE(p_type, q.type) AS type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds,
        q.on_complete, q.ordered, q.notify, q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate,
        q.group_rate_seconds, q.paused, q.ring, q.fair, q.dead_stops_group
    FROM (
        (SELECT * FROM mq_queue WHERE p_type IS NULL AND type <> '')
        UNION ALL
        (SELECT * FROM mq_queue WHERE type IN (p_type, '') AND p_type IS NOT NULL ORDER BY type DESC LIMIT 1)
    ) AS q
    ORDER BY q.type ASC;
END
