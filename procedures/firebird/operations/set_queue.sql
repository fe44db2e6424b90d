-- set_queue: set the policy of a queue; NULL does not change a setting.
-- Arguments:   p_type (1 to 200 characters); the settings, each with its limits and its first value: p_lease_seconds (1
--              to 86,400; 60), p_max_attempts (1 to 1,000; 25), p_backoff_seconds (0 to 315,360,000; 5),
--              p_backoff_max_seconds (0 to 315,360,000; 3,600), p_on_complete (delete or archive; delete), p_ordered (0
--              or 1; 0), p_notify (0 or 1; 1), p_max_active (0 to 1,000,000; 0, no limit), p_rate (messages per
--              p_rate_seconds, 0 to 1,000,000; 0, no limit), p_rate_seconds (1 to 86,400; 1); the same limits for each
--              group_key: p_group_max_active (0), p_group_rate (0), p_group_rate_seconds (1); p_ring (0 or 1; 0), p_fair (0 or 1; 0)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with p_ordered, p_ring, p_fair or a limit per group), 50002 invalid_argument, 50004 queue_not_empty
--              (ordered can change, and limits per group can be added or removed, only without new and active messages)
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict
-- Example:     SELECT * FROM mq_set_queue('invoice', NULL, 5, NULL, NULL, 'archive');

CREATE OR ALTER PROCEDURE mq_set_queue (
    p_type mq_argument, p_lease_seconds bigint = NULL, p_max_attempts bigint = NULL, p_backoff_seconds bigint = NULL,
    p_backoff_max_seconds bigint = NULL, p_on_complete mq_text = NULL, p_ordered bigint = NULL, p_notify bigint = NULL,
    p_max_active bigint = NULL, p_rate bigint = NULL, p_rate_seconds bigint = NULL, p_group_max_active bigint = NULL,
    p_group_rate bigint = NULL, p_group_rate_seconds bigint = NULL, p_ring bigint = NULL, p_fair bigint = NULL
)
RETURNS (
    type mq_name, lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET UTF8, ordered smallint, notify smallint, max_active integer, rate integer,
    rate_seconds integer, group_max_active integer, group_rate integer, group_rate_seconds integer, paused smallint,
    ring smallint, fair smallint, known smallint
)
AS
DECLARE v_grouped smallint; DECLARE v_old_ordered smallint; DECLARE v_old_grouped smallint; DECLARE v_old_fair smallint;
DECLARE v_limits smallint;
DECLARE v_old_max_active integer; DECLARE v_old_rate integer; DECLARE v_old_seconds integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_range('max_attempts', p_max_attempts, 1, 1000);
    EXECUTE PROCEDURE imq_require_range('backoff_seconds', p_backoff_seconds, 0, 315360000);
    EXECUTE PROCEDURE imq_require_range('backoff_max_seconds', p_backoff_max_seconds, 0, 315360000);
    -- LIKE, because = ignores trailing blanks.
    IF (p_on_complete NOT LIKE 'delete' AND p_on_complete NOT LIKE 'archive') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'on_complete: must be delete or archive');
    EXECUTE PROCEDURE imq_require_range('ordered', p_ordered, 0, 1);
    EXECUTE PROCEDURE imq_require_range('notify', p_notify, 0, 1);
    EXECUTE PROCEDURE imq_require_range('max_active', p_max_active, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('rate', p_rate, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('rate_seconds', p_rate_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_range('group_max_active', p_group_max_active, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('group_rate', p_group_rate, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('group_rate_seconds', p_group_rate_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_range('ring', p_ring, 0, 1);
    EXECUTE PROCEDURE imq_require_range('fair', p_fair, 0, 1);
    -- A snapshot could hide the messages that these settings must not meet, and those that wait for a token.
    IF (COALESCE(p_ordered, p_group_max_active, p_group_rate, p_group_rate_seconds, p_ring, p_fair) IS NOT NULL
        AND RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') <> 'READ COMMITTED') THEN
        EXECUTE PROCEDURE imq_require_read_committed;

    known = imq_is_known(p_type);
    BEGIN
        INSERT INTO mq_queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered,
            ring, fair, notify, paused)
        SELECT :p_type, d.lease_seconds, d.max_attempts, d.backoff_seconds, d.backoff_max_seconds, d.on_complete, d.ordered,
            d.ring, d.fair, d.notify, d.paused
        FROM mq_queue AS d
        WHERE d.type = '' AND NOT EXISTS (SELECT 1 FROM mq_queue AS q WHERE q.type = :p_type);
    WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        -- Another call has created it in the meantime. If that call has not committed, this one cannot continue.
        IF (NOT EXISTS (SELECT 1 FROM mq_queue AS q WHERE q.type = :p_type)) THEN
            EXCEPTION;
    END
    SELECT COALESCE(:p_ordered, q.ordered), q.on_complete, COALESCE(:p_max_active, q.max_active), COALESCE(:p_rate, q.rate),
        COALESCE(:p_group_max_active, q.group_max_active), COALESCE(:p_group_rate, q.group_rate), q.ordered, q.grouped,
        q.group_max_active, q.group_rate, q.group_rate_seconds, COALESCE(:p_ring, q.ring), COALESCE(:p_fair, q.fair), q.fair
    FROM mq_queue AS q WHERE q.type = :p_type FOR UPDATE WITH LOCK
    INTO ordered, on_complete, max_active, rate, group_max_active, group_rate, v_old_ordered, v_old_grouped,
        v_old_max_active, v_old_rate, v_old_seconds, ring, fair, v_old_fair;
    IF (ordered = 1 AND group_max_active > 1) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'group_max_active: must be 0 or 1 on an ordered queue, not ' || group_max_active);
    v_limits = IIF(EXISTS (
        SELECT * FROM mq_queue_group AS g WHERE g.type = :p_type AND (g.max_active > 0 OR g.rate > 0)
    ), 1, 0);
    IF (ordered = 1 AND EXISTS (SELECT * FROM mq_queue_group AS g WHERE g.type = :p_type AND g.max_active > 1)) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'max_active: must be 0 or 1 for each group of an ordered queue, see set_group');
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
    IF (p_on_complete = 'delete' AND on_complete = 'archive') THEN
        -- A queue that does not archive keeps no results.
        DELETE FROM mq_result AS r WHERE EXISTS (SELECT 1 FROM mq_message AS m WHERE m.id = r.id AND m.type = :p_type);
    UPDATE mq_queue AS q
    SET q.lease_seconds = COALESCE(:p_lease_seconds, q.lease_seconds),
        q.max_attempts = COALESCE(:p_max_attempts, q.max_attempts),
        q.backoff_seconds = COALESCE(:p_backoff_seconds, q.backoff_seconds),
        q.backoff_max_seconds = COALESCE(:p_backoff_max_seconds, q.backoff_max_seconds),
        q.on_complete = COALESCE(:p_on_complete, q.on_complete),
        q.ordered = :ordered,
        q.notify = COALESCE(:p_notify, q.notify),
        q.max_active = :max_active,
        q.rate = :rate,
        q.rate_seconds = COALESCE(:p_rate_seconds, q.rate_seconds),
        q.group_max_active = :group_max_active,
        q.group_rate = :group_rate,
        q.group_rate_seconds = COALESCE(:p_group_rate_seconds, q.group_rate_seconds),
        q.ring = :ring,
        q.fair = :fair,
        q.grouped = :v_grouped
    WHERE q.type = :p_type;
    SELECT q.type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds, q.on_complete, q.ordered, q.notify,
        q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused,
        q.ring, q.fair
    FROM mq_queue AS q WHERE q.type = :p_type
    INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, max_active, rate,
        rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair;
    IF (fair <> v_old_fair) THEN
        EXECUTE PROCEDURE imq_set_lanes(p_type, fair, 2147483647);
    IF (max_active + rate > 0 AND NOT EXISTS (SELECT 1 FROM mq_limited AS l WHERE l.type = :p_type)) THEN
        INSERT INTO mq_limited (type, full_at) VALUES (:p_type, 0);
    IF (v_grouped = 1 AND (group_max_active <> v_old_max_active OR group_rate <> v_old_rate
        OR group_rate_seconds <> v_old_seconds)) THEN
        EXECUTE PROCEDURE imq_rebuild_groups(p_type);
    IF (COALESCE(p_max_active, p_rate, p_rate_seconds, p_group_max_active, p_group_rate, p_group_rate_seconds) IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
