-- area_health: schedules that have stopped, as a check of queue_health.
CREATE OR REPLACE FUNCTION mq_internal.area_health() RETURNS TABLE (
    name text, verdict text, value double precision, unit text, detail text
)
LANGUAGE sql AS $$
    SELECT 'stopped_schedules', CASE WHEN count(*) > 0 THEN 'bad' ELSE 'ok' END, count(*), 'schedules',
        coalesce('the server does not know the time zone of ' || string_agg(s.name, ', ' ORDER BY s.name)
            || '; call set_schedule again with a name of pg_timezone_names', 'none')
    FROM (SELECT c.name FROM mq.schedule AS c WHERE c.next_at IS NULL ORDER BY c.name LIMIT 10) AS s;
$$;
