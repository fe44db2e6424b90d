-- set_queue: change settings of a queue.
-- Arguments:   p_type (1 to 200 characters), p_options (a flat JSON object; a setting that it does not name keeps its
--              value, null sets the default). The settings with their limits and defaults: lease_seconds (1 to 86,400;
--              60), max_attempts (1 to 1,000; 25), backoff_seconds (0 to 315,360,000; 5), backoff_max_seconds (0 to
--              315,360,000; 3,600), on_complete (delete or archive; delete), ordered (0 or 1; 0), notify (0 or 1; 1),
--              max_active (0 to 1,000,000; 0, no limit), rate (messages per rate_seconds, 0 to 1,000,000; 0, no limit),
--              rate_seconds (1 to 86,400; 1); the same limits for each group_key: group_max_active (0), group_rate (0),
--              group_rate_seconds (1); ring (1: consumers go round by id; 0), fair (1: the groups of a priority take
--              turns; 0), dead_stops_group (1: in an ordered queue, a dead letter stops its group_key until it is redriven
--              or deleted; 0)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with ordered or a limit per group), 50002 invalid_argument, 50004 queue_not_empty
--              (ordered can change only without new and active messages), 50009 area_missing (the area ring
--              or fair)
-- Transaction: joins the caller's; calls for one type wait for each other. A change of ring or fair locks the ready
--              messages until it ends; a change of settings waits for calls that dead-letter messages of an ordered queue
-- Example:     CALL mq_set_queue('invoice', '{"max_attempts": 5, "on_complete": "archive"}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_queue(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_read, v_defaults, v_dead longtext CHARACTER SET utf8mb4;
    -- The settings to change; NULL: not to change.
    DECLARE s_lease_seconds, s_max_attempts, s_backoff_seconds, s_backoff_max_seconds, s_ordered, s_notify, s_max_active, s_rate,
        s_rate_seconds, s_group_max_active, s_group_rate, s_group_rate_seconds, s_ring, s_fair, s_stops int;
    DECLARE s_on_complete varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_own, v_used, v_orphans, v_limited, v_conversion, v_known, v_stops, v_was_stops tinyint;
    DECLARE v_was_ordered, v_was_grouped, v_was_ring, v_was_fair, v_ordered, v_grouped, v_ring, v_fair, v_limits, v_own_limits tinyint;
    DECLARE v_group_max_active, v_group_rate, v_most, v_count int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    SELECT JSON_OBJECT('lease_seconds', lease_seconds, 'max_attempts', max_attempts, 'backoff_seconds', backoff_seconds,
        'backoff_max_seconds', backoff_max_seconds, 'on_complete', on_complete, 'ordered', ordered, 'notify', notify, 'max_active',
        max_active, 'rate', rate, 'rate_seconds', rate_seconds, 'group_max_active', group_max_active, 'group_rate', group_rate,
        'group_rate_seconds', group_rate_seconds, 'ring', ring, 'fair', fair,
        'dead_stops_group', dead_stops_group)
    INTO v_defaults FROM mq_queue WHERE type = '';
    CALL imq_read_options(p_options, 'options', '{"lease_seconds": [1, 86400], "max_attempts": [1, 1000],
        "backoff_seconds": [0, 315360000], "backoff_max_seconds": [0, 315360000], "on_complete": "text", "ordered": [0, 1],
        "notify": [0, 1], "max_active": [0, 1000000], "rate": [0, 1000000], "rate_seconds": [1, 86400],
        "group_max_active": [0, 1000000], "group_rate": [0, 1000000], "group_rate_seconds": [1, 86400], "ring": [0, 1],
        "fair": [0, 1], "dead_stops_group": [0, 1]}', v_defaults, v_read);
    SELECT j.lease_seconds, j.max_attempts, j.backoff_seconds, j.backoff_max_seconds, j.on_complete, j.ordered, j.notify,
        j.max_active, j.rate, j.rate_seconds, j.group_max_active, j.group_rate, j.group_rate_seconds, j.ring, j.fair,
        j.dead_stops_group
    INTO s_lease_seconds, s_max_attempts, s_backoff_seconds, s_backoff_max_seconds, s_on_complete, s_ordered, s_notify, s_max_active,
        s_rate, s_rate_seconds, s_group_max_active, s_group_rate, s_group_rate_seconds, s_ring, s_fair, s_stops
    FROM JSON_TABLE(v_read, '$' COLUMNS (
        lease_seconds int PATH '$.lease_seconds', max_attempts int PATH '$.max_attempts',
        backoff_seconds int PATH '$.backoff_seconds', backoff_max_seconds int PATH '$.backoff_max_seconds',
        on_complete varchar(200) CHARACTER SET utf8mb4 PATH '$.on_complete', ordered int PATH '$.ordered',
        notify int PATH '$.notify', max_active int PATH '$.max_active', rate int PATH '$.rate',
        rate_seconds int PATH '$.rate_seconds', group_max_active int PATH '$.group_max_active',
        group_rate int PATH '$.group_rate', group_rate_seconds int PATH '$.group_rate_seconds', ring int PATH '$.ring',
        fair int PATH '$.fair', dead_stops_group int PATH '$.dead_stops_group')) AS j;
    -- Compared as bytes: a collation may equate 'Delete' or 'delete ' with delete.
    IF CAST(s_on_complete AS binary) NOT IN ('delete', 'archive') THEN
        CALL imq_raise_error('invalid_argument', 'on_complete: must be delete or archive');
    END IF;
    IF s_ring THEN
        CALL imq_require_area('ring');
    END IF;
    IF s_fair THEN
        CALL imq_require_area('fair');
    END IF;

    -- A snapshot could hide the messages that these settings must not meet, and those that wait for a token.
    CALL imq_begin_call(COALESCE(s_ordered, s_group_max_active, s_group_rate, s_group_rate_seconds, s_ring, s_fair,
        s_stops) IS NOT NULL, v_own);
    CALL imq_is_known(p_type, v_known);
    CALL imq_add_queue(p_type);
    SELECT q.ordered, q.grouped, q.ring, q.fair, q.group_limits, COALESCE(s_ordered, q.ordered), COALESCE(s_ring, q.ring),
        COALESCE(s_fair, q.fair), COALESCE(s_group_max_active, q.group_max_active), COALESCE(s_group_rate, q.group_rate),
        COALESCE(s_stops, q.dead_stops_group), q.dead_stops_group
    INTO v_was_ordered, v_was_grouped, v_was_ring, v_was_fair, v_limits, v_ordered, v_ring, v_fair, v_group_max_active,
        v_group_rate, v_stops, v_was_stops
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
    ELSEIF v_stops AND NOT v_ordered THEN
        CALL imq_raise_error('invalid_argument', 'dead_stops_group: must be 0 on a queue that is not ordered');
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
    SET lease_seconds = COALESCE(s_lease_seconds, lease_seconds),
        max_attempts = COALESCE(s_max_attempts, max_attempts),
        backoff_seconds = COALESCE(s_backoff_seconds, backoff_seconds),
        backoff_max_seconds = COALESCE(s_backoff_max_seconds, backoff_max_seconds),
        on_complete = COALESCE(s_on_complete, on_complete),
        ordered = COALESCE(s_ordered, ordered),
        notify = COALESCE(s_notify, notify),
        max_active = COALESCE(s_max_active, max_active),
        rate = COALESCE(s_rate, rate),
        rate_seconds = COALESCE(s_rate_seconds, rate_seconds),
        group_max_active = COALESCE(s_group_max_active, group_max_active),
        group_rate = COALESCE(s_group_rate, group_rate),
        group_rate_seconds = COALESCE(s_group_rate_seconds, group_rate_seconds),
        ring = v_ring,
        fair = v_fair,
        dead_stops_group = v_stops,
        converted = converted OR v_conversion,
        group_limits = v_limits
    WHERE type = p_type;
    IF v_conversion THEN
        CALL imq_move_ready(p_type, 1);
    END IF;
    SELECT (s_max_active > 0 OR s_rate > 0) AND NOT EXISTS (SELECT * FROM mq_limited WHERE type = p_type) INTO v_limited;
    IF v_limited THEN
        INSERT IGNORE INTO mq_limited (type, full_at) VALUES (p_type, UTC_TIMESTAMP(6));
    END IF;
    IF v_grouped AND v_was_grouped AND (s_group_max_active IS NOT NULL OR s_group_rate IS NOT NULL
        OR s_group_rate_seconds IS NOT NULL) THEN
        CALL imq_hurry_groups(p_type);
    END IF;
    IF v_stops > v_was_stops THEN
        -- Waits for calls that redrive or delete dead letters: those are gone. Place -1 may be taken: see pick_grouped.
        SELECT COUNT(*) INTO v_count
        FROM (SELECT id FROM mq_dead FORCE INDEX (dead_age) WHERE type = p_type LOCK IN SHARE MODE) AS e;
        INSERT IGNORE INTO mq_group_lock (type, group_key, place, id)
        SELECT m.type, m.group_key, m.id, m.id FROM mq_dead AS e FORCE INDEX (dead_age)
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = e.id
        WHERE e.type = p_type AND m.group_key IS NOT NULL;
    ELSEIF v_was_stops > v_stops THEN
        -- Found without locks, deleted by primary keys: so this does not wait for claims.
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ']'), ']') INTO v_dead
        FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
        STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = l.id
        WHERE l.type = p_type;
        IF v_dead IS NOT NULL THEN
            CALL imq_free_groups(p_type, v_dead);
        END IF;
    END IF;
    IF s_on_complete = 'delete' THEN
        -- A queue that does not archive keeps no results.
        DELETE k FROM mq_result AS k STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = k.id WHERE m.type = p_type;
    END IF;
    SELECT q.type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds, q.on_complete, q.ordered,
        q.notify, q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused, q.ring,
        q.fair, q.dead_stops_group, v_known AS known
    FROM mq_queue AS q WHERE q.type = p_type FOR UPDATE;
    CALL imq_end_call(v_own);
END
