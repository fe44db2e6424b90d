-- zone_minutes: the UTC offset of a time zone at a given time.
-- This variant for Firebird 4.0 and later replaces zone_minutes.sql.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_zone_minutes (p_zone mq_name, p_minute bigint)
RETURNS integer
AS
DECLARE v_at timestamp WITH TIME ZONE;
BEGIN
    IF (UPPER(p_zone) = 'UTC') THEN
        RETURN 0;
    v_at = CAST(DATEADD(p_minute MINUTE TO timestamp '1970-01-01 00:00:00') || ' UTC' AS timestamp WITH TIME ZONE) AT TIME ZONE p_zone;
    RETURN EXTRACT(TIMEZONE_HOUR FROM v_at) * 60 + EXTRACT(TIMEZONE_MINUTE FROM v_at);
END^
SET TERM ; ^
