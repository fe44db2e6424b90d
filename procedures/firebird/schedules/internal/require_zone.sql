-- require_zone: refuse a time zone that the server does not know.
-- Arguments:   p_zone (NULL passes and means UTC)
--
-- This variant is for Firebird 3.0, which has no time zones. require_zone.4.sql replaces it from 4.0 on.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_require_zone (p_zone mq_argument)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('time_zone', p_zone, 1);
    IF (UPPER(p_zone) <> 'UTC') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'time_zone: must be UTC, because Firebird 3.0 has no time zones');
END^
SET TERM ; ^
