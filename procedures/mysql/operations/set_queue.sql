-- set_queue: set the policy of a queue; NULL does not change a setting.
-- Arguments:   p_type (1 to 200 characters); the settings, each with its limits and its first value: p_lease_seconds (1
--              to 86,400; 60), p_max_attempts (1 to 1,000; 25), p_backoff_seconds (0 to 315,360,000; 5),
--              p_backoff_max_seconds (0 to 315,360,000; 3,600), p_on_complete (delete or archive; delete), p_ordered (0
--              or 1; 0), p_notify (0 or 1; 1), p_max_active (0 to 1,000,000; 0, no limit), p_rate (messages per
--              p_rate_seconds, 0 to 1,000,000; 0, no limit), p_rate_seconds (1 to 86,400; 1); the same limits for each
--              group_key: p_group_max_active (0), p_group_rate (0), p_group_rate_seconds (1); p_ring (1: round-robin claims by
--              id; 0), p_fair (1: the groups of a priority take turns; 0)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with p_ordered or a limit per group), 50002 invalid_argument, 50004 queue_not_empty
--              (ordered can change only without new and active messages)
-- Transaction: joins the caller's; calls for one type wait for each other. A change of p_ring or p_fair locks the ready
--              messages until it ends
-- Example:     CALL mq_set_queue('invoice', 60, 5, 5, 3600, 'archive', 0, 1, 5, 0, 1, 0, 0, 1, 0, 0);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_queue(
    IN p_type longtext CHARACTER SET utf8mb4, IN p_lease_seconds bigint, IN p_max_attempts bigint,
    IN p_backoff_seconds bigint, IN p_backoff_max_seconds bigint, IN p_on_complete longtext CHARACTER SET utf8mb4,
    IN p_ordered bigint, IN p_notify bigint, IN p_max_active bigint, IN p_rate bigint, IN p_rate_seconds bigint,
    IN p_group_max_active bigint, IN p_group_rate bigint, IN p_group_rate_seconds bigint, IN p_ring bigint,
    IN p_fair bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_used, v_orphans, v_limited, v_conversion, v_known tinyint;
    DECLARE v_was_ordered, v_was_grouped, v_was_ring, v_was_fair, v_ordered, v_grouped, v_ring, v_fair, v_limits, v_own_limits tinyint;
    DECLARE v_group_max_active, v_group_rate, v_most int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    CALL imq_require_range('max_attempts', p_max_attempts, 1, 1000);
    CALL imq_require_range('backoff_seconds', p_backoff_seconds, 0, 315360000);
    CALL imq_require_range('backoff_max_seconds', p_backoff_max_seconds, 0, 315360000);
    -- Compared as bytes: a collation may equate 'Delete' or 'delete ' with delete.
    IF CAST(p_on_complete AS binary) NOT IN ('delete', 'archive') THEN
        CALL imq_raise_error('invalid_argument', 'on_complete: must be delete or archive');
    END IF;
    CALL imq_require_range('ordered', p_ordered, 0, 1);
    CALL imq_require_range('notify', p_notify, 0, 1);
    CALL imq_require_range('max_active', p_max_active, 0, 1000000);
    CALL imq_require_range('rate', p_rate, 0, 1000000);
    CALL imq_require_range('rate_seconds', p_rate_seconds, 1, 86400);
    CALL imq_require_range('group_max_active', p_group_max_active, 0, 1000000);
    CALL imq_require_range('group_rate', p_group_rate, 0, 1000000);
    CALL imq_require_range('group_rate_seconds', p_group_rate_seconds, 1, 86400);
    CALL imq_require_range('ring', p_ring, 0, 1);
    CALL imq_require_range('fair', p_fair, 0, 1);

    -- A snapshot could hide the messages that these settings must not meet, and those that wait for a token.
    CALL imq_begin_call(COALESCE(p_ordered, p_group_max_active, p_group_rate, p_group_rate_seconds, p_ring, p_fair) IS NOT NULL, v_own);
    CALL imq_is_known(p_type, v_known);
    CALL imq_add_queue(p_type);
    SELECT q.ordered, q.grouped, q.ring, q.fair, q.group_limits, COALESCE(p_ordered, q.ordered), COALESCE(p_ring, q.ring),
        COALESCE(p_fair, q.fair), COALESCE(p_group_max_active, q.group_max_active), COALESCE(p_group_rate, q.group_rate)
    INTO v_was_ordered, v_was_grouped, v_was_ring, v_was_fair, v_limits, v_ordered, v_ring, v_fair, v_group_max_active,
        v_group_rate
    FROM mq_queue AS q WHERE q.type = p_type FOR UPDATE;
    SELECT EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type)
        OR v_was_grouped AND EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
    INTO v_used;
    SELECT COALESCE(MAX(max_active > 0 OR rate > 0), 0), COALESCE(MAX(max_active), 0) INTO v_own_limits, v_most
    FROM mq_queue_group FORCE INDEX (PRIMARY) WHERE type = p_type;
    -- Messages stay in groups until the queue is empty.
    SET v_limits = v_own_limits OR v_limits AND v_used,
        v_grouped = v_ordered OR v_group_max_active > 0 OR v_group_rate > 0 OR v_limits;
    IF v_ordered AND v_group_max_active > 1 THEN
        CALL imq_raise_error('invalid_argument', 'group_max_active: must be 0 or 1 on an ordered queue');
    ELSEIF v_ordered AND v_most > 1 THEN
        CALL imq_raise_error('invalid_argument', 'ordered: set_group has given a group a max_active above 1');
    ELSEIF v_ring AND (v_ordered OR v_fair OR v_grouped) THEN
        CALL imq_raise_error('invalid_argument', CONCAT('ring: not together with ',
            CASE WHEN v_ordered THEN 'ordered' WHEN v_grouped THEN 'limits per group' ELSE 'fair' END));
    ELSEIF v_used AND v_ordered <> v_was_ordered THEN
        CALL imq_raise_error('queue_not_empty', CONCAT('ordered can change only while ', p_type,
            ' holds no new and no active message'));
    ELSEIF v_used AND v_grouped <> v_was_grouped THEN
        CALL imq_raise_error('queue_not_empty', CONCAT('limits per group can be added or removed only while ', p_type,
            ' holds no new and no active message'));
    END IF;
    SELECT v_grouped > v_was_grouped AND EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
    INTO v_orphans;
    SET v_conversion = v_ring <> v_was_ring OR v_fair <> v_was_fair;
    IF v_orphans THEN
        -- Rows of a transaction that sent while the queue still had groups, and committed after it had none.
        DELETE FROM mq_grouped WHERE type = p_type;
    END IF;
    IF v_was_grouped AND NOT v_grouped THEN
        DELETE FROM mq_bucket WHERE type = p_type;
    END IF;
    UPDATE mq_queue
    SET lease_seconds = COALESCE(p_lease_seconds, lease_seconds),
        max_attempts = COALESCE(p_max_attempts, max_attempts),
        backoff_seconds = COALESCE(p_backoff_seconds, backoff_seconds),
        backoff_max_seconds = COALESCE(p_backoff_max_seconds, backoff_max_seconds),
        on_complete = COALESCE(p_on_complete, on_complete),
        ordered = COALESCE(p_ordered, ordered),
        notify = COALESCE(p_notify, notify),
        max_active = COALESCE(p_max_active, max_active),
        rate = COALESCE(p_rate, rate),
        rate_seconds = COALESCE(p_rate_seconds, rate_seconds),
        group_max_active = COALESCE(p_group_max_active, group_max_active),
        group_rate = COALESCE(p_group_rate, group_rate),
        group_rate_seconds = COALESCE(p_group_rate_seconds, group_rate_seconds),
        ring = v_ring,
        fair = v_fair,
        converted = converted OR v_conversion,
        group_limits = v_limits
    WHERE type = p_type;
    IF v_conversion THEN
        CALL imq_move_ready(p_type, 1);
    END IF;
    SELECT (p_max_active > 0 OR p_rate > 0) AND NOT EXISTS (SELECT * FROM mq_limited WHERE type = p_type) INTO v_limited;
    IF v_limited THEN
        INSERT IGNORE INTO mq_limited (type, full_at) VALUES (p_type, UTC_TIMESTAMP(6));
    END IF;
    IF v_grouped AND v_was_grouped AND (p_group_max_active IS NOT NULL OR p_group_rate IS NOT NULL
        OR p_group_rate_seconds IS NOT NULL) THEN
        CALL imq_hurry_groups(p_type);
    END IF;
    IF p_on_complete = 'delete' THEN
        -- A queue that does not archive keeps no results.
        DELETE k FROM mq_result AS k STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = k.id WHERE m.type = p_type;
    END IF;
    SELECT q.type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds, q.on_complete, q.ordered,
        q.notify, q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused, q.ring,
        q.fair, v_known AS known
    FROM mq_queue AS q WHERE q.type = p_type FOR UPDATE;
    CALL imq_end_call(v_own);
END
