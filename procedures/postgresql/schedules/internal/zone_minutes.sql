-- zone_minutes: the UTC offset of a time zone at a given time.
-- Arguments: p_minute (the time: minutes since 1970-01-01 00:00 UTC)
-- Returns: the offset in minutes; negative west of Greenwich
CREATE OR REPLACE FUNCTION mq_internal.zone_minutes(p_zone text, p_minute bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_at timestamptz := to_timestamp(p_minute * 60);
BEGIN
    RETURN floor(extract(epoch FROM (v_at AT TIME ZONE p_zone) - (v_at AT TIME ZONE 'UTC')) / 60);
END
$$;
