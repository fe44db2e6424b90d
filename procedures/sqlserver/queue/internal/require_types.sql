-- require_types: refuse a list that is not 1 to 1,000 types, each written once or more.
-- Arguments: @types (the list); read it with mq_internal.read_types
CREATE OR ALTER PROCEDURE mq_internal.require_types
    @types nvarchar(max)
AS
BEGIN
    DECLARE @most int = 1000;
    DECLARE @line int = 0, @item nvarchar(max), @detail nvarchar(2000);
    DECLARE @lines TABLE (n int NOT NULL PRIMARY KEY, item nvarchar(max), valid bit NOT NULL);
    INSERT INTO @lines (n, item, valid) SELECT n, item, valid FROM mq_internal.split_list(@types);
    SELECT TOP (1) @detail = CONCAT(N'types: line ', n, N' begins with a double quote and is not a JSON string that this database can hold')
    FROM @lines
    WHERE valid = 0
    ORDER BY n;
    -- Only these lines can be wrong: a call of require_name for each line would take longer than the claim.
    WHILE @line IS NOT NULL AND @detail IS NULL
    BEGIN
        SET @line = (SELECT MIN(n) FROM @lines WHERE n > @line AND (DATALENGTH(item) NOT BETWEEN 1 AND 200 OR UNICODE(RIGHT(item, 1)) = 32));
        IF @line IS NOT NULL
        BEGIN
            SELECT @item = item FROM @lines WHERE n = @line;
            SET @detail = CONCAT(N'types: line ', @line);
            EXEC mq_internal.require_name @detail, @item, 0;
            SET @detail = NULL;
        END;
    END;
    IF @detail IS NULL AND (SELECT COUNT(*) FROM mq_internal.read_types(@types)) NOT BETWEEN 1 AND @most
        SET @detail = N'types: must be 1 to 1,000 types, one per line';
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
END;
