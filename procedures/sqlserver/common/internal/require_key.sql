-- require_key: refuse a text that is no batch key, and turn one that is into a key.
-- Arguments:   @batch_key (a text, so that a wrong one is refused by name)
-- Returns:     @key
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     EXEC mq.require_key N'6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', @key OUTPUT;

CREATE OR ALTER PROCEDURE mq.require_key
    @batch_key nvarchar(max),
    @key uniqueidentifier OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF @batch_key IS NULL
        EXEC mq.raise_error 'invalid_argument', N'batch_key: must not be NULL';
    -- The length first: what follows a key is cut off without a word.
    IF LEN(@batch_key + N'.') = 37
        SET @key = TRY_CONVERT(uniqueidentifier, @batch_key);
    IF @key IS NULL
        EXEC mq.raise_error 'invalid_argument', N'batch_key: must be a key as a claim returns it';
END;
GO
