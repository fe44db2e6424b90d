-- topic_prefix: the part of a pattern before its first wildcard, without the dot in front of it.
-- Returns: the prefix; empty: the pattern begins with a wildcard; the whole pattern when it has no wildcard
CREATE OR ALTER FUNCTION mq_internal.topic_prefix (@pattern nvarchar(400))
RETURNS nvarchar(400)
AS
BEGIN
    DECLARE @star int = CHARINDEX(N'*', @pattern COLLATE Latin1_General_100_BIN2);
    DECLARE @hash int = CHARINDEX(N'#', @pattern COLLATE Latin1_General_100_BIN2);
    DECLARE @at int = CASE WHEN @star = 0 OR @hash BETWEEN 1 AND @star THEN @hash ELSE @star END;
    RETURN CASE @at
        WHEN 0 THEN @pattern
        WHEN 1 THEN N''
        ELSE LEFT(@pattern COLLATE Latin1_General_100_BIN2, @at - 2)
    END;
END;
