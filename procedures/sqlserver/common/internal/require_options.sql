-- require_options: refuse what mq_internal.read_options finds wrong.
-- Arguments: @argument (the error's text begins with it), @known as there
CREATE OR ALTER PROCEDURE mq_internal.require_options
    @options nvarchar(max), @argument nvarchar(200), @known nvarchar(max)
AS
BEGIN
    DECLARE @name nvarchar(400), @problem nvarchar(400), @low bigint, @high bigint, @detail nvarchar(2000), @next nvarchar(400) = N'';
    DECLARE @separator nvarchar(2) = N' ';
    EXEC mq_internal.require_object @options, @argument;
    SELECT TOP (1) @name = LEFT(name, 100), @problem = problem, @low = low, @high = high
    FROM mq_internal.read_options(@options, @known) WHERE problem IS NOT NULL;
    IF @problem = N'must be a number'
        EXEC mq_internal.require_range @name, NULL, @low, @high, 1;
    SET @detail = CONCAT(@name, N': ', @problem);
    IF @problem = N'is not known'
    BEGIN
        SET @detail = CONCAT(@argument, N': ', @name, N' is not known; known are');
        -- One after the other: STRING_AGG exists only from 2017 on.
        WHILE @next IS NOT NULL
        BEGIN
            SET @next = (SELECT MIN([key]) FROM OPENJSON(@known) WHERE [key] > @next);
            SET @detail = CONCAT(@detail, @separator + @next);
            SET @separator = N', ';
        END;
    END;
    IF @problem IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
END;
