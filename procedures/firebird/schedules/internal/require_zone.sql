-- require_zone: refuse a time zone that the server does not know.
-- Arguments:   p_zone (NULL passes and means UTC)
CREATE OR ALTER PROCEDURE imq_require_zone (p_zone mq_argument)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('time_zone', p_zone, 1);
    -- AT TIME ZONE also accepts offsets.
    /*!4 IF (UPPER(p_zone) <> 'UTC' AND NOT EXISTS (
        SELECT * FROM rdb$time_zones AS z WHERE UPPER(z.rdb$time_zone_name) = UPPER(:p_zone)
    )) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'time_zone: this server does not know ' || p_zone
            || '; to list the names: SELECT rdb$time_zone_name FROM rdb$time_zones');
    EXIT; */
    IF (UPPER(p_zone) <> 'UTC') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'time_zone: must be UTC, because Firebird 3.0 has no time zones');
END
