-- require_range: refuse a number outside its limits; NULL passes and means the default.
-- Arguments: @argument (its name in the contract), @value, @low, @high, @always (1: refuse it in any case)
CREATE OR ALTER PROCEDURE mq_internal.require_range
    @argument varchar(200), @value bigint, @low bigint, @high bigint, @always bit = 0
AS
BEGIN
    DECLARE @detail nvarchar(2000), @least varchar(30) = @low, @most varchar(30) = @high, @digits int = 3;
    IF @value NOT BETWEEN @low AND @high OR @always = 1
    BEGIN
        -- A comma after each three digits from the right. FORMAT would need the server's .NET, and money ends below 10 to
        -- the power of 15.
        WHILE @digits < 27
        BEGIN
            IF LEN(REPLACE(@least, '-', '')) > @digits
                SET @least = STUFF(@least, LEN(@least) - @digits + 1, 0, ',');
            IF LEN(@most) > @digits
                SET @most = STUFF(@most, LEN(@most) - @digits + 1, 0, ',');
            SET @digits = @digits + 4;
        END;
        SET @detail = CONCAT(@argument, N': must be ', @least, N' to ', @most);
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
END;
