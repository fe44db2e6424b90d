-- fill: fill the placeholders of a statement's template, for dynamic SQL.
-- Arguments: @template (a placeholder is a name in braces), @pieces (the text for each name; NULL: an empty text)
-- Returns: the statement; braces inside a piece are not placeholders
CREATE OR ALTER FUNCTION mq_internal.fill (@template nvarchar(max), @pieces mq.pieces READONLY)
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @filled nvarchar(max) = N'', @left nvarchar(max) = @template, @piece nvarchar(max);
    DECLARE @from int = CHARINDEX(N'{', @template), @to int;
    WHILE @from > 0
    BEGIN
        SELECT @to = CHARINDEX(N'}', @left, @from), @piece = NULL;
        SELECT @piece = piece FROM @pieces WHERE name = SUBSTRING(@left, @from + 1, @to - @from - 1);
        SELECT @filled = CONCAT(@filled, LEFT(@left, @from - 1), @piece), @left = STUFF(@left, 1, @to, N'');
        SET @from = CHARINDEX(N'{', @left);
    END;
    RETURN @filled + @left;
END;
