-- set_group: give one group of a queue its own share or limits; NULL: as the queue. The call replaces all four settings.
-- Arguments:   p_type, p_group_key (1 to 200 characters), p_weight (messages per turn of a fair queue, 1 to 1,000; NULL: 1),
--              p_max_active (0 to 1,000,000; 0: no limit), p_rate (messages per p_rate_seconds, 0 to 1,000,000; 0: no
--              limit), p_rate_seconds (1 to 86,400)
-- Returns:     known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty (the first limit per group can come
--              only without new and active messages)
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     CALL mq_set_group('invoice', 'customer-7', 3, NULL, NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_group(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_group_key longtext CHARACTER SET utf8mb4,
    IN p_weight bigint,
    IN p_max_active bigint,
    IN p_rate bigint,
    IN p_rate_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_ordered, v_ring, v_grouped, v_limits, v_used, v_orphans, v_known tinyint;
    DECLARE v_most, v_weight int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_name('group_key', p_group_key, 0);
    CALL imq_require_range('weight', p_weight, 1, 1000);
    CALL imq_require_range('max_active', p_max_active, 0, 1000000);
    CALL imq_require_range('rate', p_rate, 0, 1000000);
    CALL imq_require_range('rate_seconds', p_rate_seconds, 1, 86400);
    -- As in set_queue.
    CALL imq_begin_call(1, v_own);
    CALL imq_is_known(p_type, v_known);
    CALL imq_add_queue(p_type);
    SELECT ordered, ring, grouped, group_limits INTO v_ordered, v_ring, v_grouped, v_limits
    FROM mq_queue WHERE type = p_type FOR UPDATE;
    IF v_ordered AND p_max_active > 1 THEN
        CALL imq_raise_error('invalid_argument', 'max_active: must be 0 or 1 on an ordered queue');
    ELSEIF v_ring AND (p_max_active > 0 OR p_rate > 0) THEN
        CALL imq_raise_error('invalid_argument', 'ring: not together with limits per group');
    ELSEIF NOT v_grouped AND (p_max_active > 0 OR p_rate > 0) THEN
        SELECT EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
            OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type)
            OR EXISTS (SELECT 1 FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type),
            EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
        INTO v_used, v_orphans;
        IF v_used THEN
            CALL imq_raise_error('queue_not_empty', CONCAT('limits per group can be added or removed only while ', p_type,
                ' holds no new and no active message'));
        ELSEIF v_orphans THEN
            -- As in set_queue.
            DELETE FROM mq_grouped WHERE type = p_type;
        END IF;
    END IF;
    IF COALESCE(p_weight, p_max_active, p_rate, p_rate_seconds) IS NULL THEN
        DELETE FROM mq_queue_group WHERE type = p_type AND group_key = p_group_key;
    ELSE
        INSERT INTO mq_queue_group (type, group_key, weight, max_active, rate, rate_seconds)
        VALUES (p_type, p_group_key, p_weight, p_max_active, p_rate, p_rate_seconds)
        ON DUPLICATE KEY UPDATE weight = p_weight, max_active = p_max_active, rate = p_rate, rate_seconds = p_rate_seconds;
    END IF;
    SELECT COALESCE(MAX(g.weight), 1) INTO v_weight
    FROM (SELECT weight FROM mq_queue_group FORCE INDEX (queue_group_weight) WHERE type = p_type ORDER BY weight DESC LIMIT 1) AS g;
    -- A limit that goes leaves the messages in their groups; set_queue ends that when the queue is empty.
    UPDATE mq_queue
    SET group_weight = v_weight, group_limits = group_limits OR COALESCE(p_max_active > 0, 0) OR COALESCE(p_rate > 0, 0)
    WHERE type = p_type;
    IF v_grouped THEN
        CALL imq_hurry_groups(p_type);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_known AS known;
END
