-- topic_beginnings: the leading parts of a topic: none of its words, the first, the first two, and so on.
-- Returns: prefix: the words, separated by dots
CREATE OR ALTER FUNCTION mq_internal.topic_beginnings (@topic nvarchar(400))
RETURNS @beginnings TABLE (prefix nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY NONCLUSTERED)
AS
BEGIN
    DECLARE @dot int = 0;
    INSERT INTO @beginnings (prefix) VALUES (N''), (@topic);
    WHILE 1 = 1
    BEGIN
        SET @dot = CHARINDEX(N'.', @topic COLLATE Latin1_General_100_BIN2, @dot + 1);
        IF @dot = 0
            BREAK;
        INSERT INTO @beginnings (prefix) VALUES (LEFT(@topic COLLATE Latin1_General_100_BIN2, @dot - 1));
    END;
    RETURN;
END;
