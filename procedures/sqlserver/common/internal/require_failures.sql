-- require_failures: refuse a list of failures that has a malformed line.
-- Arguments: @bad and @bad_error (the first lines for which mq_internal.read_failures returned valid = 0 and
--     valid_error = 0; NULL: none)
CREATE OR ALTER PROCEDURE mq_internal.require_failures
    @bad int, @bad_error int
AS
BEGIN
    DECLARE @detail nvarchar(2000);
    IF @bad <= COALESCE(@bad_error, @bad)
        SET @detail = CONCAT(N'failures: line ', @bad,
            N': must be id,retry_after_seconds,error where retry_after_seconds is empty, -1, or 0 to 315,360,000');
    ELSE IF @bad_error IS NOT NULL
        SET @detail = CONCAT(N'failures: line ', @bad_error,
            N': the error begins with a double quote and is not a JSON string that this database can hold');
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
END;
