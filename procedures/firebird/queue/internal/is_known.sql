-- is_known: whether a queue has settings, messages in any state, or marks of messages that were claimed from it.
CREATE OR ALTER FUNCTION imq_is_known (p_type mq_name)
RETURNS smallint
AS
BEGIN
    RETURN IIF(EXISTS (SELECT * FROM mq_queue AS q WHERE q.type = :p_type PLAN (q INDEX (mq_queue_pk)))
        OR EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type PLAN (r INDEX (mq_ready_lane)))
        OR EXISTS (SELECT * FROM mq_mark AS k WHERE k.type = :p_type PLAN (k INDEX (mq_mark_newest)))
        OR EXISTS (SELECT * FROM mq_delayed AS d WHERE d.type = :p_type PLAN (d INDEX (mq_delayed_due)))
        OR EXISTS (SELECT * FROM mq_batch AS b WHERE b.type = :p_type PLAN (b INDEX (mq_batch_lease)))
        OR EXISTS (SELECT * FROM mq_dead AS e WHERE e.type = :p_type PLAN (e INDEX (mq_dead_age)))
        OR EXISTS (SELECT * FROM mq_archive AS a WHERE a.type = :p_type PLAN (a INDEX (mq_archive_type))), 1, 0);
END
