-- require_key: convert a text to a batch key, and refuse a text that is not one.
-- Arguments: @batch_key (a text: the error for a wrong one names the argument)
CREATE OR ALTER PROCEDURE mq_internal.require_key
    @batch_key nvarchar(max), @key uniqueidentifier OUTPUT
AS
BEGIN
    IF @batch_key IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'batch_key: must not be NULL';
    -- Check the length first: the conversion ignores text after the key.
    IF LEN(@batch_key + N'.') = 37
        SET @key = TRY_CONVERT(uniqueidentifier, @batch_key);
    IF @key IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'batch_key: must be a batch key that a claim returned';
END;
