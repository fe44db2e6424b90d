-- use_feed: refuse a caller without the rights on the table of a feed.
-- Arguments: @feed, @change (0: SELECT; 1: SELECT and UPDATE)
--
-- To a caller who may not see it, the table looks dropped: mq_internal.table_facts tests first whether it exists.
CREATE OR ALTER PROCEDURE mq_internal.use_feed
    @feed nvarchar(400), @change bit
AS
BEGIN
    DECLARE @quoted nvarchar(600), @detail nvarchar(2000);
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)) FROM mq.feed WHERE name = @feed;
    IF @quoted IS NULL
        EXEC mq_internal.raise_error 'not_found', N'feed: there is no feed {}', @feed;
    IF mq_internal.table_facts(@quoted) <= 0
        EXEC mq_internal.raise_error 'not_found', N'table: there is no {} any more', @quoted;
    SET @detail = mq_internal.missing_rights(@quoted, @change, 0);
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
END;
