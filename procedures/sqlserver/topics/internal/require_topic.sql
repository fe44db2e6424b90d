-- require_topic: refuse a text that is not a topic, or not a pattern of topics.
-- Arguments: @argument (its name in the contract), @topic, @wildcards (1: a pattern, in which a word may be * or #)
CREATE OR ALTER PROCEDURE mq_internal.require_topic
    @argument varchar(200), @topic nvarchar(max), @wildcards bit
AS
BEGIN
    -- Compared by code unit.
    DECLARE @refused nvarchar(20) = CONCAT(N'%["', NCHAR(1), N'-', NCHAR(32), NCHAR(127), N']%');
    -- Put dots around the topic: then two dots always mean an empty word.
    DECLARE @words nvarchar(max) = CONCAT(N'.', @topic, N'.'), @detail nvarchar(2000);
    -- Check the length first, but not the blank at the end, which this check reports itself.
    IF @topic IS NULL OR DATALENGTH(@topic) = 0 OR LEN(@words COLLATE Latin1_General_100_CI_AS_SC) > 202
        EXEC mq_internal.require_name @argument, @topic, 0;
    IF CHARINDEX(N'..', @words COLLATE Latin1_General_100_BIN2) > 0
        OR CHARINDEX(N'\', @topic COLLATE Latin1_General_100_BIN2) > 0
        OR CHARINDEX(NCHAR(0) COLLATE Latin1_General_100_BIN2, @topic COLLATE Latin1_General_100_BIN2) > 0
        OR @topic COLLATE Latin1_General_100_BIN2 LIKE @refused
        OR (@wildcards = 0 AND @topic COLLATE Latin1_General_100_BIN2 LIKE N'%[*#]%')
        OR @words COLLATE Latin1_General_100_BIN2 LIKE N'%[*#][^.]%'
        OR @words COLLATE Latin1_General_100_BIN2 LIKE N'%[^.][*#]%'
    BEGIN
        SET @detail = CONCAT(@argument, CASE @wildcards
            WHEN 1 THEN N': must be words separated by dots; a word may be * or #, and otherwise contains no *, #, '
                + N'quotes, backslashes or white space'
            ELSE N': must be words separated by dots, without *, #, quotes, backslashes or white space'
        END);
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
END;
