-- drop_queue: remove the settings of a queue, of its groups, and its marks.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     known (0: nothing had this name)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty (the queue holds a new, active or dead message)
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; a message that is sent at the same time is kept
-- Example:     SELECT * FROM mq_drop_queue('email');
CREATE OR ALTER PROCEDURE mq_drop_queue (
    p_type mq_argument
)
RETURNS (known smallint)
AS
DECLARE v_grouped smallint = 0;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_read_committed;
    known = imq_is_known(p_type);
    SELECT q.grouped FROM mq_queue AS q WHERE q.type = :p_type FOR UPDATE WITH LOCK INTO v_grouped;
    IF (EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type PLAN (r INDEX (mq_ready_lane)))
        OR EXISTS (SELECT * FROM mq_delayed AS d WHERE d.type = :p_type PLAN (d INDEX (mq_delayed_due)))
        OR EXISTS (SELECT * FROM mq_batch AS b WHERE b.type = :p_type PLAN (b INDEX (mq_batch_lease)))
        OR EXISTS (SELECT * FROM mq_dead AS e WHERE e.type = :p_type PLAN (e INDEX (mq_dead_age)))
        OR v_grouped = 1 AND EXISTS (SELECT * FROM mq_grouped AS g WHERE g.type = :p_type PLAN (g INDEX (mq_grouped_pk)))) THEN
        EXECUTE PROCEDURE imq_raise_error('queue_not_empty', p_type || ' holds messages; purge them first');
    -- A sender may have read the settings already. Claims take its message as after a change of the settings: see set_queue.
    DELETE FROM mq_queue_group WHERE type = :p_type;
    DELETE FROM mq_limited WHERE type = :p_type;
    DELETE FROM mq_bucket WHERE type = :p_type;
    DELETE FROM mq_group_lock WHERE type = :p_type;
    DELETE FROM mq_mark WHERE type = :p_type;
    DELETE FROM mq_ring WHERE type = :p_type;
    DELETE FROM mq_queue WHERE type = :p_type;
    SUSPEND;
END
