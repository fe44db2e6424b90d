-- error_group: the common text of errors that differ only in numbers: the first line, with # for each run of digits,
--     without trailing blanks.
-- Returns: up to 200 characters, from the first 500 of the error; '': no error
CREATE OR ALTER FUNCTION mq_internal.error_group (@error nvarchar(max))
RETURNS nvarchar(400)
AS
BEGIN
    DECLARE @cr nchar(1) = NCHAR(13), @lf nchar(1) = NCHAR(10), @line nvarchar(2000);
    -- Compared by code unit, but cut to its length between characters.
    DECLARE @lines nvarchar(max) = REPLACE(CONCAT(@error, NCHAR(10)) COLLATE Latin1_General_100_BIN2, NCHAR(13), NCHAR(10));
    SET @lines = LEFT(@lines COLLATE Latin1_General_100_BIN2, CHARINDEX(@lf, @lines COLLATE Latin1_General_100_BIN2) - 1);
    SET @line = LEFT(@lines COLLATE Latin1_General_100_CI_AS_SC, 500);
    SET @line = REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(@line COLLATE Latin1_General_100_BIN2, N'0', N'#'), N'1', N'#'), N'2', N'#'),
        N'3', N'#'), N'4', N'#');
    SET @line = REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(@line COLLATE Latin1_General_100_BIN2, N'5', N'#'), N'6', N'#'), N'7', N'#'),
        N'8', N'#'), N'9', N'#');
    -- The line contains neither CR nor LF. So each # becomes this pair; where two pairs meet, the middle is removed; then
    -- each pair becomes #.
    SET @line = REPLACE(@line COLLATE Latin1_General_100_BIN2, N'#', @cr + @lf);
    SET @line = REPLACE(@line COLLATE Latin1_General_100_BIN2, @lf + @cr, N'');
    SET @line = REPLACE(@line COLLATE Latin1_General_100_BIN2, @cr + @lf, N'#');
    RETURN RTRIM(LEFT(@line COLLATE Latin1_General_100_CI_AS_SC, 200));
END;
