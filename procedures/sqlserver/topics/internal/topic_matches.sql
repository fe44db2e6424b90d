-- topic_matches: whether a pattern matches a topic.
-- Arguments: @pattern (* matches exactly one word, # zero or more), @topic
-- Returns: 1 or 0
--
-- Compares word by word from the left. A # first matches no word, and one more word each time that the part after it
-- does not match. Of several #, only the last one grows, because it can take any words that the earlier ones could
-- take. So the time grows with the length of the topic times the length of the part between two #.
CREATE OR ALTER FUNCTION mq_internal.topic_matches (@pattern nvarchar(400), @topic nvarchar(400))
RETURNS bit
AS
BEGIN
    -- A dot ends each word, and one more dot ends the pattern, so an empty word is the end. Compared by code unit,
    -- independent of the database's collation.
    DECLARE @words nvarchar(401) = @topic + N'.', @parts nvarchar(402) = @pattern + N'..';
    DECLARE @length int = LEN(@words COLLATE Latin1_General_100_BIN2), @at int = 1, @to int, @word nvarchar(400);
    DECLARE @part_at int = 1, @part_to int, @part nvarchar(400), @grow_at int, @after int;
    WHILE @at <= @length
    BEGIN
        SET @to = CHARINDEX(N'.', @words COLLATE Latin1_General_100_BIN2, @at);
        SET @word = SUBSTRING(@words COLLATE Latin1_General_100_BIN2, @at, @to - @at);
        SET @part_to = CHARINDEX(N'.', @parts COLLATE Latin1_General_100_BIN2, @part_at);
        SET @part = SUBSTRING(@parts COLLATE Latin1_General_100_BIN2, @part_at, @part_to - @part_at);
        IF @part COLLATE Latin1_General_100_BIN2 = N'#'
        BEGIN
            SELECT @after = @part_to + 1, @grow_at = @at;
            SET @part_at = @after;
        END
        ELSE IF @part COLLATE Latin1_General_100_BIN2 IN (N'*', @word)
            SELECT @part_at = @part_to + 1, @at = @to + 1;
        ELSE IF @grow_at IS NULL
            RETURN 0;
        ELSE
        BEGIN
            SET @grow_at = CHARINDEX(N'.', @words COLLATE Latin1_General_100_BIN2, @grow_at) + 1;
            SELECT @at = @grow_at, @part_at = @after;
        END;
    END;
    -- The rest of the pattern may contain only #.
    WHILE SUBSTRING(@parts COLLATE Latin1_General_100_BIN2, @part_at, 2) = N'#.'
        SET @part_at = @part_at + 2;
    RETURN CASE SUBSTRING(@parts COLLATE Latin1_General_100_BIN2, @part_at, 2) WHEN N'.' THEN 1 ELSE 0 END;
END;
