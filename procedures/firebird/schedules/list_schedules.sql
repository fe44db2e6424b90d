-- list_schedules: list the schedules with their last and next times.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_body_length (characters of each body and its headers, 0 to
--              16,777,216; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT name, next_at FROM mq_list_schedules;

CREATE OR ALTER PROCEDURE mq_list_schedules (
    p_type mq_argument = NULL,
    p_body_length bigint = NULL
)
RETURNS (
    name mq_name, type mq_name, cron mq_name, time_zone mq_name, body mq_text, headers mq_text, priority integer,
    group_key mq_name, overlap smallint, next_at timestamp, last_at timestamp, last_id bigint
)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_range('body_length', p_body_length, 0, 16777216);
    FOR
        SELECT s.name, s.type, s.cron, s.time_zone, IIF(OCTET_LENGTH(s.body) > :p_body_length, LEFT(s.body, :p_body_length), s.body),
            IIF(OCTET_LENGTH(s.headers) > :p_body_length, LEFT(s.headers, :p_body_length), s.headers), s.priority, s.group_key,
            s.overlap, s.next_at, s.last_at, s.last_id
        FROM mq_schedule AS s
        WHERE :p_type IS NULL OR s.type = :p_type
        ORDER BY s.name
        INTO name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, last_at, last_id
    DO
        SUSPEND;
END
