-- drop_queue: remove the settings of a queue, of its groups, and its marks.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     known (0: nothing had this name)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty (the queue holds a new, active or dead message)
-- Transaction: joins the caller's, which must be READ COMMITTED; a message that is sent at the same time is kept
-- Example:     CALL mq_drop_queue('email');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_queue(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_known, v_grouped, v_lanes, v_used tinyint DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_begin_call(1, v_own);
    CALL imq_is_known(p_type, v_known);
    SELECT COALESCE(MAX(q.grouped), 0), COALESCE(MAX(q.fair OR q.converted), 0) INTO v_grouped, v_lanes
    FROM (SELECT grouped, fair, converted FROM mq_queue WHERE type = p_type FOR UPDATE) AS q;
    SELECT EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_dead AS e FORCE INDEX (dead_age) WHERE e.type = p_type)
        OR v_grouped AND EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
    INTO v_used;
    IF v_used THEN
        CALL imq_raise_error('queue_not_empty', CONCAT(p_type, ' holds messages; purge them first'));
    END IF;
    -- A sender may have read the settings already. Claims take its message as after a change of the settings: see set_queue.
    -- In a queue with the default settings, they search the lanes of a former fair queue only if the defaults say so.
    IF v_lanes THEN
        UPDATE mq_queue SET converted = 1 WHERE type = '';
    END IF;
    DELETE FROM mq_queue_group WHERE type = p_type;
    DELETE FROM mq_limited WHERE type = p_type;
    DELETE FROM mq_bucket WHERE type = p_type;
    DELETE FROM mq_group_lock WHERE type = p_type;
    DELETE FROM mq_mark WHERE type = p_type;
    DELETE FROM mq_ring WHERE type = p_type;
    DELETE FROM mq_queue WHERE type = p_type;
    CALL imq_end_call(v_own);
    SELECT v_known AS known;
END
