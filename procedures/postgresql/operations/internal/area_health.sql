-- area_health: what queue_health checks for the areas: nothing. The area schedules replaces this.
CREATE OR REPLACE FUNCTION mq_internal.area_health() RETURNS TABLE (
    name text, verdict text, value double precision, unit text, detail text
)
LANGUAGE plpgsql AS $$
BEGIN
END
$$;
