-- split_lines: split a text into its lines.
-- Returns: n (1, 2, ...), line; includes empty lines
--
-- The text is converted to a JSON array of its lines, which the server reads and numbers in one pass. After
-- STRING_ESCAPE it contains no control characters: so U+0001 can represent an escaped backslash while escaped line
-- feeds become ends of items.
CREATE OR ALTER FUNCTION mq_internal.split_lines (@text nvarchar(max))
RETURNS TABLE
AS
RETURN
    -- Compared by code unit: most collations equate a wide quote with a quote, ignore control characters, and match
    -- digits of other scripts with 0-9.
    SELECT CAST(j.[key] AS int) + 1 AS n, j.value COLLATE Latin1_General_100_BIN2 AS line
    FROM OPENJSON(
        N'["' + REPLACE(REPLACE(REPLACE(
            STRING_ESCAPE(@text, 'json') COLLATE Latin1_General_100_BIN2, N'\\', NCHAR(1)
        ), N'\n', N'","'), NCHAR(1), N'\\') + N'"]'
    ) AS j;
