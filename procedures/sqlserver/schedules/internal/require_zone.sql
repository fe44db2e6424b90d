-- require_zone: refuse a time zone that the server does not know.
-- Arguments:   @zone (NULL passes and means UTC)
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXEC mq.require_zone N'Romance Standard Time';

CREATE OR ALTER PROCEDURE mq.require_zone
    @zone nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @detail nvarchar(2000);
    EXEC mq.require_name 'time_zone', @zone, 1;
    IF @zone IS NOT NULL AND mq.knows_zone(@zone) = 0
    BEGIN
        SET @detail = CONCAT(N'time_zone: this server does not know ', @zone, N'; to list the names: SELECT name FROM sys.time_zone_info');
        EXEC mq.raise_error 'invalid_argument', @detail;
    END;
END;
GO
