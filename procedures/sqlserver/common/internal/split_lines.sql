-- split_lines: the lines of a text.
-- Arguments:   @text
-- Returns:     n (1, 2, ...), line; empty lines too
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT n, line FROM mq.split_lines(N'one' + NCHAR(10) + N'two');
--
-- The text is made a JSON array of its lines, which the server reads in one pass and numbers. STRING_ESCAPE leaves no control
-- character in it: so U+0001 can stand for an escaped backslash while the escaped line feeds become ends of items.

CREATE OR ALTER FUNCTION mq.split_lines (@text nvarchar(max))
RETURNS TABLE
AS
RETURN
    -- Code unit by code unit: to most collations a wide quote is a quote, control characters are nothing, and 0-9 also holds digits
    -- of other scripts.
    SELECT CAST(j.[key] AS int) + 1 AS n, j.value COLLATE Latin1_General_100_BIN2 AS line
    FROM OPENJSON(
        N'["' + REPLACE(REPLACE(REPLACE(
            STRING_ESCAPE(@text, 'json') COLLATE Latin1_General_100_BIN2, N'\\', NCHAR(1)
        ), N'\n', N'","'), NCHAR(1), N'\\') + N'"]'
    ) AS j;
GO
