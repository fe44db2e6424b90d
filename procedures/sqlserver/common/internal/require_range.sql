-- require_range: refuse a number outside its limits; NULL passes and means the default.
-- Arguments: @argument (its name in the contract), @value, @low, @high, @always (1: refuse it in any case)
CREATE OR ALTER PROCEDURE mq_internal.require_range
    @argument varchar(200), @value bigint, @low bigint, @high bigint, @always bit = 0
AS
BEGIN
    DECLARE @detail nvarchar(2000), @most varchar(40), @last varchar(40) = '';
    IF @value NOT BETWEEN @low AND @high OR @always = 1
    BEGIN
        -- Style 1 of money writes commas in every language; FORMAT would need the server's .NET. Money ends below 10 to
        -- the power of 15.
        IF @high >= 100000000000000
            SELECT @last = CONCAT(',', RIGHT(CAST(@high AS varchar(20)), 3)), @high = @high / 1000;
        SET @most = CONCAT(REPLACE(RTRIM(CONVERT(varchar(30), CAST(@high AS money), 1)), '.00', ''), @last);
        SET @detail = CONCAT(
            @argument, N': must be ', REPLACE(RTRIM(CONVERT(varchar(30), CAST(@low AS money), 1)), '.00', ''), N' to ', @most
        );
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
END;
