-- require_zone: refuse a time zone that the server does not know.
-- Arguments:   p_zone (NULL passes: it means UTC)
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXECUTE PROCEDURE mq_require_zone('Europe/Paris');
--
-- This is the body for Firebird 4.0 and later, beside require_zone.sql for 3.0.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_require_zone (
    p_zone mq_argument
)
AS
BEGIN
    EXECUTE PROCEDURE mq_require_name('time_zone', p_zone, 1);
    -- AT TIME ZONE takes more than that: offsets.
    IF (UPPER(p_zone) <> 'UTC' AND NOT EXISTS (
        SELECT * FROM rdb$time_zones AS z WHERE UPPER(z.rdb$time_zone_name) = UPPER(:p_zone)
    )) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'time_zone: ' || p_zone
            || ' is not among the names that this server knows: SELECT rdb$time_zone_name FROM rdb$time_zones');
END^

SET TERM ; ^
