-- wait_for_message: report at once whether a message is ready.
-- Arguments:   p_type (1 to 200 characters), p_seconds (0 to 3,600 or NULL; checked but not used)
-- Returns:     ready (1: a message can be claimed; else 0), next_run_at (when the next delayed message or schedule is due,
--              the next lease expires, or a limit allows the next message; NULL: nothing is expected), reason (ready, empty,
--              delayed, paused, limited, blocked or unknown)
-- Errors:      50002 invalid_argument
-- Transaction: reads only; a snapshot does not see messages sent later
-- Example:     SELECT * FROM mq_wait_for_message('email');
--
-- Firebird has no sleep function. To wait, register for the event 'mq_' followed by the first 30 characters of the type,
-- call this procedure, then wait for the event until next_run_at or for a few seconds.

CREATE OR ALTER PROCEDURE mq_wait_for_message (
    p_type mq_argument,
    p_seconds bigint = NULL
)
RETURNS (ready smallint, next_run_at timestamp, reason varchar(7) CHARACTER SET ASCII)
AS
DECLARE v_now timestamp; DECLARE v_scanned_at timestamp;
DECLARE v_scan_at timestamp = '1900-01-01';
DECLARE v_due timestamp; DECLARE v_lease timestamp; DECLARE v_next_at timestamp;
DECLARE c_never timestamp = '9999-12-31';
DECLARE v_paused smallint; DECLARE v_room smallint = 1; DECLARE v_ordered smallint; DECLARE v_grouped smallint;
DECLARE v_max_active integer; DECLARE v_rate integer; DECLARE v_rate_seconds integer;
DECLARE v_room_at timestamp;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('seconds', p_seconds, 0, 3600);
    v_now = mq_utc_now();
    SELECT paused, max_active, rate, rate_seconds, ordered, grouped FROM imq_policy(:p_type)
    INTO v_paused, v_max_active, v_rate, v_rate_seconds, v_ordered, v_grouped;
    SELECT d.run_at FROM mq_delayed AS d WHERE d.type = :p_type
    PLAN (d ORDER mq_delayed_due)
    ORDER BY d.type, d.run_at, d.id
    ROWS 1
    INTO v_due;
    SELECT b.lease_until FROM mq_batch AS b WHERE b.type = :p_type
    PLAN (b ORDER mq_batch_lease)
    ORDER BY b.type, b.lease_until
    ROWS 1
    INTO v_lease;
    v_next_at = imq_next_due(p_type);
    -- A claim rescues expired claims and sends due schedules only in a full scan: see make_ready. They are not ready before the next
    -- one.
    SELECT DATEADD(1 SECOND TO scanned_at) FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1
    INTO v_scanned_at;
    IF (v_scanned_at BETWEEN v_now AND DATEADD(7 SECOND TO v_now)) THEN
        v_scan_at = v_scanned_at;
    v_lease = MAXVALUE(v_lease, v_scan_at);
    v_next_at = MAXVALUE(v_next_at, v_scan_at);
    next_run_at = NULLIF(MINVALUE(COALESCE(v_due, c_never), COALESCE(v_lease, c_never), COALESCE(v_next_at, c_never)), c_never);
    ready = 0;
    IF (v_paused = 0) THEN
    BEGIN
        IF (next_run_at <= v_now) THEN
            ready = 1;
        ELSE
            SELECT 1 FROM mq_ready AS r WHERE r.type = :p_type
            PLAN (r ORDER mq_ready_pk)
            ORDER BY r.type, r.priority, r.run_at, r.id
            ROWS 1
            INTO ready;
        IF (v_max_active + v_rate > 0) THEN
            EXECUTE PROCEDURE imq_has_room(p_type, v_max_active, v_rate, v_rate_seconds) RETURNING_VALUES v_room, v_room_at;
        IF (v_room = 0) THEN
        BEGIN
            -- The consumer that finishes a batch wakes the waiters.
            IF (ready = 1 OR next_run_at < v_room_at) THEN
                next_run_at = v_room_at;
            ready = 0;
        END
    END
    reason = 'ready';
    IF (ready = 0) THEN
        reason = TRIM(CASE
            WHEN v_paused = 1 THEN 'paused'
            WHEN v_room = 0 AND (v_due <= v_now OR EXISTS (
                SELECT * FROM mq_ready AS r WHERE r.type = :p_type PLAN (r INDEX (mq_ready_lane))
            )) THEN 'limited'
            WHEN v_grouped = 1 AND EXISTS (SELECT * FROM mq_grouped AS g WHERE g.type = :p_type PLAN (g INDEX (mq_grouped_pk)))
                THEN IIF(v_ordered = 1, 'blocked', 'limited')
            WHEN v_due IS NOT NULL OR imq_next_due(p_type) IS NOT NULL THEN 'delayed'
            WHEN imq_is_known(p_type) = 1 THEN 'empty'
            ELSE 'unknown'
        END);
    SUSPEND;
END
