-- area_health: the check of queue_health for schedules.
--
-- Replaces the file of the same name in operations/internal.
CREATE OR ALTER PROCEDURE imq_area_health
RETURNS (
    name varchar(60) CHARACTER SET UTF8, verdict varchar(4) CHARACTER SET UTF8, measured double precision,
    unit varchar(20) CHARACTER SET UTF8, detail mq_text
)
AS
BEGIN
    name = 'stopped_schedules';
    unit = 'schedules';
    SELECT COUNT(*), LIST(s.name, ', ')
    FROM (SELECT c.name FROM mq_schedule AS c WHERE c.next_at IS NULL ORDER BY c.name ROWS 10) AS s
    INTO measured, detail;
    verdict = TRIM(IIF(measured > 0, 'bad', 'ok'));
    detail = COALESCE('the server does not know the time zone of ' || detail || '; call set_schedule again with one that it knows',
        'none');
    SUSPEND;
END
