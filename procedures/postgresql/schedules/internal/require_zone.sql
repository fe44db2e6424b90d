-- require_zone: refuse a time zone that the server does not know.
CREATE OR REPLACE FUNCTION mq_internal.require_zone(p_zone text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_name('time_zone', p_zone, true);
    -- AT TIME ZONE also accepts abbreviations, and offsets in which east is negative.
    IF upper(p_zone) <> 'UTC' AND NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE lower(z.name) = lower(p_zone)) THEN
        PERFORM mq_internal.raise_error('invalid_argument', format(
            'time_zone: this server does not know %s; to list the names: SELECT name FROM pg_timezone_names', p_zone));
    END IF;
END
$$;
