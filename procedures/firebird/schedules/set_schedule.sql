-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   p_name, p_type, p_cron (see next_occurrence), p_body (up to 16 MiB), p_time_zone (NULL: UTC), p_headers
--              (up to 64 KiB), p_priority (-32,768 to 32,767; NULL: 0), p_group_key, p_overlap (a time is skipped while
--              the last message is new; 0: also while it is active; NULL: 1); names and keys have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at (UTC)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other, or in a NO WAIT transaction fail with a lock
--              conflict; of two calls that create it, one fails with isc_unique_key_violation
-- Example:     SELECT * FROM mq_set_schedule('nightly', 'report', '30 2 * * *', '{}', 'Europe/Paris');
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.

CREATE OR ALTER PROCEDURE mq_set_schedule (
    p_name mq_argument, p_type mq_argument, p_cron mq_argument, p_body mq_text, p_time_zone mq_argument = NULL,
    p_headers mq_text = NULL, p_priority bigint = NULL, p_group_key mq_argument = NULL, p_overlap bigint = NULL
)
RETURNS (created smallint, next_at timestamp)
AS
DECLARE v_now timestamp; DECLARE v_next_at timestamp;
DECLARE v_zone mq_name;
DECLARE v_same smallint;
BEGIN
    v_now = mq_utc_now();
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    IF (p_body IS NULL OR OCTET_LENGTH(p_body) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    EXECUTE PROCEDURE imq_require_zone(p_time_zone);
    v_zone = COALESCE(p_time_zone, 'UTC');
    IF (OCTET_LENGTH(p_headers) > 65536) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    EXECUTE PROCEDURE imq_require_headers(p_headers);
    EXECUTE PROCEDURE imq_require_range('priority', p_priority, -32768, 32767);
    EXECUTE PROCEDURE imq_require_name('group_key', p_group_key, 1);
    EXECUTE PROCEDURE imq_require_range('overlap', p_overlap, 0, 1);
    next_at = imq_next_time(p_cron, v_now, v_zone);
    IF (next_at IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'cron: no date matches in the next 50 years');

    SELECT IIF(s.cron = :p_cron AND s.time_zone = :v_zone AND s.next_at IS NOT NULL, 1, 0), s.next_at
    FROM mq_schedule AS s WHERE s.name = :p_name FOR UPDATE WITH LOCK
    INTO v_same, v_next_at;
    IF (v_same IS NULL) THEN
    BEGIN
        INSERT INTO mq_schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
        VALUES (:p_name, :p_type, :p_cron, :v_zone, :p_body, :p_headers, COALESCE(:p_priority, 0), :p_group_key,
            COALESCE(:p_overlap, 1), :next_at, :v_now);
        created = 1;
    END
    ELSE
    BEGIN
        next_at = IIF(v_same = 1, v_next_at, next_at);
        UPDATE mq_schedule AS s
        SET s.type = :p_type,
            s.cron = :p_cron,
            s.time_zone = :v_zone,
            s.body = :p_body,
            s.headers = :p_headers,
            s.priority = COALESCE(:p_priority, 0),
            s.group_key = :p_group_key,
            s.overlap = COALESCE(:p_overlap, 1),
            s.next_at = :next_at,
            s.moved_at = IIF(:v_same = 1, s.moved_at, :v_now)
        WHERE s.name = :p_name;
        created = 0;
    END
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
