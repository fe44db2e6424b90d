-- is_known: whether a queue has settings, messages in any state, or marks of messages that were claimed from it.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_is_known(
    IN p_type varchar(200) CHARACTER SET utf8mb4, OUT p_known tinyint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- SELECT ... INTO reads without locks; a subquery in SET or IF locks.
    SELECT EXISTS (SELECT 1 FROM mq_queue FORCE INDEX (PRIMARY) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_dead FORCE INDEX (dead_age) WHERE type = p_type)
        OR EXISTS (SELECT 1 FROM mq_archive FORCE INDEX (archive_type) WHERE type = p_type)
    INTO p_known;
END
