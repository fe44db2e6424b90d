-- topic_headers: the headers of a published message.
-- Arguments: @topic, @headers (a JSON object; NULL: none)
-- Returns: the headers with the topic as their first member; NULL when @headers is not an object
CREATE OR ALTER FUNCTION mq_internal.topic_headers (@topic nvarchar(400), @headers nvarchar(max))
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @object nvarchar(max) = COALESCE(@headers, N'{}'), @rest nvarchar(max);
    -- Compared by their codes: most collations equate a wide bracket with a bracket.
    IF LEN(@object) < 2 OR UNICODE(@object) <> 123 OR UNICODE(RIGHT(@object, 1)) <> 125
        RETURN NULL;
    SET @rest = STUFF(@object COLLATE Latin1_General_100_BIN2, 1, 1, N'');
    -- An empty object gets no comma.
    IF @rest COLLATE Latin1_General_100_BIN2 LIKE N'%[^ ' + NCHAR(9) + NCHAR(10) + NCHAR(13) + N'}]%'
        SET @rest = N',' + @rest;
    ELSE
        SET @rest = N'}';
    RETURN CONCAT(N'{"topic":"', @topic, N'"', @rest);
END;
