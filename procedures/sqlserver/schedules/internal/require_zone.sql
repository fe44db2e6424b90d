-- require_zone: refuse a time zone that the server does not know.
-- Arguments: @zone (NULL passes and means UTC)
CREATE OR ALTER PROCEDURE mq_internal.require_zone
    @zone nvarchar(max)
AS
BEGIN
    DECLARE @detail nvarchar(2000);
    EXEC mq_internal.require_name 'time_zone', @zone, 1;
    IF @zone IS NOT NULL AND mq_internal.knows_zone(@zone) = 0
    BEGIN
        SET @detail = CONCAT(N'time_zone: this server does not know ', @zone, N'; to list the names: SELECT name FROM sys.time_zone_info');
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
END;
