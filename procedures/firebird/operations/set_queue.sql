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
-- Errors:      50001 wrong_isolation (with ordered, ring, fair or a limit per group), 50002 invalid_argument, 50004 queue_not_empty
--              (ordered can change, and limits per group can be added or removed, only without new and active messages),
--              50009 area_missing (ring and fair need the area of that name)
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict. A change of dead_stops_group waits for calls that finish messages or redrive dead letters, for at most
--              two seconds; such calls wait for it, too
-- Example:     SELECT * FROM mq_set_queue('invoice', '{"max_attempts": 5, "on_complete": "archive"}');

CREATE OR ALTER PROCEDURE mq_set_queue (
    p_type mq_argument,
    p_options mq_text = NULL
)
RETURNS (
    type mq_name, lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET UTF8, ordered smallint, notify smallint, max_active integer, rate integer,
    rate_seconds integer, group_max_active integer, group_rate integer, group_rate_seconds integer, paused smallint,
    ring smallint, fair smallint, dead_stops_group smallint, known smallint
)
AS
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_text mq_text;
DECLARE v_wake smallint = 0;
DECLARE v_grouped smallint; DECLARE v_old_ordered smallint; DECLARE v_old_grouped smallint; DECLARE v_old_fair smallint;
DECLARE v_limits smallint; DECLARE v_old_stops smallint; DECLARE v_id bigint; DECLARE v_group_key mq_name;
DECLARE v_mine integer; DECLARE v_until timestamp;
DECLARE v_old_max_active integer; DECLARE v_old_rate integer; DECLARE v_old_seconds integer;
DECLARE v_old_on_complete varchar(7) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    known = imq_is_known(p_type);
    BEGIN
        INSERT INTO mq_queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered,
            ring, fair, dead_stops_group, notify, paused)
        SELECT :p_type, d.lease_seconds, d.max_attempts, d.backoff_seconds, d.backoff_max_seconds, d.on_complete, d.ordered,
            d.ring, d.fair, d.dead_stops_group, d.notify, d.paused
        FROM mq_queue AS d
        WHERE d.type = '' AND NOT EXISTS (SELECT 1 FROM mq_queue AS q WHERE q.type = :p_type);
    WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        -- Another call has created it in the meantime. If that call has not committed, this one cannot continue.
        IF (NOT EXISTS (SELECT 1 FROM mq_queue AS q WHERE q.type = :p_type)) THEN
            EXCEPTION;
    END
    SELECT q.on_complete, q.ordered, q.grouped, q.group_max_active, q.group_rate, q.group_rate_seconds, q.fair, q.dead_stops_group
    FROM mq_queue AS q WHERE q.type = :p_type FOR UPDATE WITH LOCK
    INTO v_old_on_complete, v_old_ordered, v_old_grouped, v_old_max_active, v_old_rate, v_old_seconds, v_old_fair, v_old_stops;
    -- An error undoes the changes.
    FOR
        SELECT o.name, o.number, o.text FROM imq_read_options(:p_options, 'options',
            ';lease_seconds:1:86400;max_attempts:1:1000;backoff_seconds:0:315360000;'
            || 'backoff_max_seconds:0:315360000;on_complete:text;ordered:0:1;notify:0:1;'
            || 'max_active:0:1000000;rate:0:1000000;rate_seconds:1:86400;'
            || 'group_max_active:0:1000000;group_rate:0:1000000;group_rate_seconds:1:86400;'
            || 'ring:0:1;fair:0:1;dead_stops_group:0:1;') AS o
        INTO v_option, v_number, v_text
    DO
    BEGIN
        -- LIKE, because = ignores trailing blanks.
        IF (v_option = 'on_complete' AND v_text NOT LIKE 'delete' AND v_text NOT LIKE 'archive') THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'on_complete: must be delete or archive');
        IF (v_option IN ('ring', 'fair') AND v_number = 1) THEN
            EXECUTE PROCEDURE imq_require_area(v_option);
        -- A snapshot could hide the messages that these settings must not meet, and those that wait for a token.
        IF ((v_option IN ('ordered', 'ring', 'fair', 'dead_stops_group') OR v_option STARTING WITH 'group_')
            AND RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') <> 'READ COMMITTED') THEN
            EXECUTE PROCEDURE imq_require_read_committed;
        v_wake = IIF(v_option IN ('max_active', 'rate', 'rate_seconds', 'dead_stops_group') OR v_option STARTING WITH 'group_', 1,
            v_wake);
        -- null: the default.
        MERGE INTO mq_queue AS q USING (SELECT * FROM mq_queue WHERE type = '') AS d ON q.type = :p_type
        WHEN MATCHED THEN UPDATE SET
            lease_seconds = IIF(:v_option = 'lease_seconds', COALESCE(:v_number, d.lease_seconds), q.lease_seconds),
            max_attempts = IIF(:v_option = 'max_attempts', COALESCE(:v_number, d.max_attempts), q.max_attempts),
            backoff_seconds = IIF(:v_option = 'backoff_seconds', COALESCE(:v_number, d.backoff_seconds), q.backoff_seconds),
            backoff_max_seconds = IIF(:v_option = 'backoff_max_seconds', COALESCE(:v_number, d.backoff_max_seconds),
                q.backoff_max_seconds),
            on_complete = IIF(:v_option = 'on_complete', COALESCE(CAST(:v_text AS varchar(7) CHARACTER SET ASCII), d.on_complete),
                q.on_complete),
            ordered = IIF(:v_option = 'ordered', COALESCE(:v_number, d.ordered), q.ordered),
            notify = IIF(:v_option = 'notify', COALESCE(:v_number, d.notify), q.notify),
            max_active = IIF(:v_option = 'max_active', COALESCE(:v_number, d.max_active), q.max_active),
            rate = IIF(:v_option = 'rate', COALESCE(:v_number, d.rate), q.rate),
            rate_seconds = IIF(:v_option = 'rate_seconds', COALESCE(:v_number, d.rate_seconds), q.rate_seconds),
            group_max_active = IIF(:v_option = 'group_max_active', COALESCE(:v_number, d.group_max_active), q.group_max_active),
            group_rate = IIF(:v_option = 'group_rate', COALESCE(:v_number, d.group_rate), q.group_rate),
            group_rate_seconds = IIF(:v_option = 'group_rate_seconds', COALESCE(:v_number, d.group_rate_seconds),
                q.group_rate_seconds),
            ring = IIF(:v_option = 'ring', COALESCE(:v_number, d.ring), q.ring),
            fair = IIF(:v_option = 'fair', COALESCE(:v_number, d.fair), q.fair),
            dead_stops_group = IIF(:v_option = 'dead_stops_group', COALESCE(:v_number, d.dead_stops_group), q.dead_stops_group);
    END
    SELECT q.type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds, q.on_complete, q.ordered, q.notify,
        q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused,
        q.ring, q.fair, q.dead_stops_group
    FROM mq_queue AS q WHERE q.type = :p_type
    INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, max_active, rate,
        rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair, dead_stops_group;
    IF (ordered = 1 AND group_max_active > 1) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'group_max_active: must be 0 or 1 on an ordered queue, not ' || group_max_active);
    v_limits = IIF(EXISTS (
        SELECT * FROM mq_queue_group AS g WHERE g.type = :p_type AND (g.max_active > 0 OR g.rate > 0)
    ), 1, 0);
    IF (ordered = 1 AND EXISTS (SELECT * FROM mq_queue_group AS g WHERE g.type = :p_type AND g.max_active > 1)) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'max_active: must be 0 or 1 for each group of an ordered queue, see set_group');
    IF (dead_stops_group > ordered) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'dead_stops_group: must be 0 on a queue that is not ordered');
    v_grouped = IIF(ordered + group_max_active + group_rate + v_limits > 0, 1, 0);
    IF (ring = 1 AND v_grouped + fair > 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'ring: cannot be combined with '
            || SUBSTRING(IIF(ordered = 1, ', ordered', '') || IIF(group_max_active + group_rate + v_limits > 0,
                ', limits per group', '') || IIF(fair = 1, ', fair', '') FROM 3));
    IF ((v_grouped <> v_old_grouped OR ordered <> v_old_ordered) AND (
        EXISTS (SELECT 1 FROM mq_ready AS r WHERE r.type = :p_type)
        OR EXISTS (SELECT 1 FROM mq_delayed AS d WHERE d.type = :p_type)
        OR EXISTS (SELECT 1 FROM mq_batch AS b WHERE b.type = :p_type)
        OR v_old_grouped = 1 AND EXISTS (SELECT 1 FROM mq_grouped AS g WHERE g.type = :p_type)
    )) THEN
    BEGIN
        -- set_group has removed the last limit: the queue keeps its groups until it is empty.
        IF (v_grouped < v_old_grouped AND ring + v_old_ordered + v_old_max_active + v_old_rate = 0) THEN
            v_grouped = 1;
        ELSE
            EXECUTE PROCEDURE imq_raise_error('queue_not_empty',
                'ordered can change, and limits per group be added or removed, only while ' || p_type
                    || ' holds no new and no active message');
    END
    IF (v_grouped > v_old_grouped) THEN
        -- Rows of a transaction that sent while the queue still had groups, and committed after it had none.
        DELETE FROM mq_grouped AS g WHERE g.type = :p_type;
    IF (on_complete = 'delete' AND v_old_on_complete = 'archive') THEN
        -- A queue that does not archive keeps no results.
        DELETE FROM mq_result AS r WHERE EXISTS (SELECT 1 FROM mq_message AS m WHERE m.id = r.id AND m.type = :p_type);
    UPDATE mq_queue AS q SET q.grouped = :v_grouped WHERE q.type = :p_type AND q.grouped <> :v_grouped;
    IF (fair <> v_old_fair) THEN
        EXECUTE PROCEDURE imq_set_lanes(p_type, fair, 2147483647);
    IF (max_active + rate > 0 AND NOT EXISTS (SELECT 1 FROM mq_limited AS l WHERE l.type = :p_type)) THEN
        INSERT INTO mq_limited (type, full_at) VALUES (:p_type, 0);
    IF (v_grouped = 1 AND (group_max_active <> v_old_max_active OR group_rate <> v_old_rate
        OR group_rate_seconds <> v_old_seconds)) THEN
        EXECUTE PROCEDURE imq_rebuild_groups(p_type);
    IF (dead_stops_group <> v_old_stops) THEN
    BEGIN
        -- Waits for calls that dead-letter messages with the old setting: see fail_message.
        FOR SELECT l.group_key, l.id FROM mq_group_lock AS l WHERE l.type = :p_type INTO v_group_key, v_id DO
            EXECUTE PROCEDURE imq_hold_place(p_type, v_group_key, v_id);
        FOR SELECT d.id FROM mq_dead AS d WHERE d.type = :p_type INTO v_id DO
        BEGIN
            v_mine = NULL;
            v_until = NULL;
            WHILE (v_mine IS NULL) DO
            BEGIN
                -- Waits for a call that redrives or deletes it: then it is gone.
                UPDATE mq_dead SET id = id WHERE id = :v_id;
                v_mine = ROW_COUNT;
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                BEGIN
                    EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
                    IF (v_until IS NULL) THEN
                        EXCEPTION;
                END
            END
            v_group_key = NULL;
            SELECT m.group_key FROM mq_message AS m WHERE m.id = :v_id AND :v_mine = 1 INTO v_group_key;
            IF (v_group_key IS NOT NULL AND dead_stops_group = 1) THEN
                UPDATE OR INSERT INTO mq_group_lock (type, group_key, id) VALUES (:p_type, :v_group_key, :v_id);
            ELSE IF (v_group_key IS NOT NULL) THEN
                EXECUTE PROCEDURE imq_free_groups(p_type, v_group_key, v_id);
        END
    END
    IF (v_wake = 1) THEN
        EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
