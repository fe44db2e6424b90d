-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   p_name, p_type, p_cron (see next_occurrence), p_body (up to 16 MiB), p_options (a flat JSON object):
--              time_zone (default UTC), headers (a text of up to 64 KiB), priority (-32,768 to 32,767; 0), group_key,
--              overlap (1: a time is skipped while the last message is new; 0: also while it is active; 1); names and keys
--              have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at (UTC)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other, or in a NO WAIT transaction fail with a lock
--              conflict; of two calls that create it, one fails with isc_unique_key_violation
-- Example:     SELECT * FROM mq_set_schedule('nightly', 'report', '30 2 * * *', '{}', '{"time_zone": "Europe/Paris"}');
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.

CREATE OR ALTER PROCEDURE mq_set_schedule (
    p_name mq_argument, p_type mq_argument, p_cron mq_argument, p_body mq_text, p_options mq_text = NULL
)
RETURNS (created smallint, next_at timestamp)
AS
DECLARE v_now timestamp; DECLARE v_next_at timestamp;
DECLARE v_zone mq_argument; DECLARE v_headers mq_text; DECLARE v_group_key mq_argument; DECLARE v_priority bigint;
DECLARE v_overlap bigint;
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_moment timestamp; DECLARE v_text mq_text;
DECLARE v_same smallint;
BEGIN
    v_now = mq_utc_now();
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    IF (p_body IS NULL OR OCTET_LENGTH(p_body) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    FOR
        SELECT o.name, o.number, o.moment, o.text FROM imq_read_options(:p_options, 'options',
            ';time_zone:key;headers:text;priority:-32768:32767;group_key:key;overlap:0:1;') AS o
        INTO v_option, v_number, v_moment, v_text
    DO
    BEGIN
        v_zone = IIF(v_option = 'time_zone', v_text, v_zone);
        v_headers = IIF(v_option = 'headers', v_text, v_headers);
        v_priority = IIF(v_option = 'priority', v_number, v_priority);
        v_group_key = IIF(v_option = 'group_key', v_text, v_group_key);
        v_overlap = IIF(v_option = 'overlap', v_number, v_overlap);
    END
    EXECUTE PROCEDURE imq_require_zone(v_zone);
    v_zone = COALESCE(v_zone, 'UTC');
    IF (OCTET_LENGTH(v_headers) > 65536) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    EXECUTE PROCEDURE imq_require_headers(v_headers);
    EXECUTE PROCEDURE imq_require_name('group_key', v_group_key, 1);
    next_at = imq_next_time(p_cron, v_now, v_zone);
    IF (next_at IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'cron: no date matches in the next 50 years');

    SELECT IIF(s.cron = :p_cron AND s.time_zone = :v_zone AND s.next_at IS NOT NULL, 1, 0), s.next_at
    FROM mq_schedule AS s WHERE s.name = :p_name FOR UPDATE WITH LOCK
    INTO v_same, v_next_at;
    IF (v_same IS NULL) THEN
    BEGIN
        INSERT INTO mq_schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
        VALUES (:p_name, :p_type, :p_cron, :v_zone, :p_body, :v_headers, COALESCE(:v_priority, 0), :v_group_key,
            COALESCE(:v_overlap, 1), :next_at, :v_now);
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
            s.headers = :v_headers,
            s.priority = COALESCE(:v_priority, 0),
            s.group_key = :v_group_key,
            s.overlap = COALESCE(:v_overlap, 1),
            s.next_at = :next_at,
            s.moved_at = IIF(:v_same = 1, s.moved_at, :v_now)
        WHERE s.name = :p_name;
        created = 0;
    END
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
