-- zone_minutes: the UTC offset of a time zone at a given time.
-- Arguments:   p_zone, p_minute (the time: minutes since 1970-01-01 00:00 UTC)
-- Returns:     the offset in minutes; negative west of Greenwich
--
-- This variant is for Firebird 3.0, which has no time zones: require_zone accepts only UTC. zone_minutes.4.sql replaces
-- it from 4.0 on.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_zone_minutes (p_zone mq_name, p_minute bigint)
RETURNS integer
AS
BEGIN
    RETURN 0;
END^
SET TERM ; ^
