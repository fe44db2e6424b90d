-- queue_stats: count each queue's messages by state; above 10,000 ready, delayed and dead are estimates.
-- Arguments:   p_type (1 to 200 characters; NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds (NULL: none is ready), estimated (1: ready,
--              delayed or dead is above 10,000; such a number is an estimate), paused (1: claims return nothing)
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks, at most 10,001 index entries per number, and all claims; see
--              estimate
-- Example:     CALL mq_queue_stats(NULL);
--
-- A caller gets one result set, so the rows are first collected as JSON.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_queue_stats(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    CALL imq_require_name('type', p_type, 1);
    IF p_type IS NULL THEN
        CALL imq_stats_of_all(v_now);
    ELSE
        CALL imq_stats_of_one(p_type, v_now);
    END IF;
END
