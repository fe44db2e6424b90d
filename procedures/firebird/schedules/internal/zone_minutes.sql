-- zone_minutes: by how much the clocks of a time zone are ahead of UTC.
-- Arguments:   p_zone, p_minute (a moment: minutes since 1970-01-01 00:00 UTC)
-- Returns:     minutes; negative west of Greenwich
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_zone_minutes('UTC', 0) FROM rdb$database; -- 0
--
-- This is the body for Firebird 3.0, which knows no time zones: require_zone lets UTC pass alone. zone_minutes.4.sql is the body for
-- later versions.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_zone_minutes (
    p_zone mq_name,
    p_minute bigint
)
RETURNS integer
AS
BEGIN
    RETURN 0;
END^

SET TERM ; ^
