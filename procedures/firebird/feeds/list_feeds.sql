-- list_feeds: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table_name, last_position, unpublished (counted up to 10,000, only if p_feed is given and its table belongs
--              to the caller; otherwise NULL), consumer, feed_position, behind (by how much), moved_at: one row
--              per consumer; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT * FROM mq_list_feeds('orders');
--
-- A count of another user's table could run that user's code with the rights of the caller, such as a computed column.

CREATE OR ALTER PROCEDURE mq_list_feeds (
    p_feed mq_argument = NULL
)
RETURNS (
    feed mq_name, table_name varchar(63) CHARACTER SET UTF8, last_position bigint, unpublished bigint, consumer mq_name,
    feed_position bigint, behind bigint, moved_at timestamp
)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_sync varchar(130) CHARACTER SET UTF8;
DECLARE v_statement mq_argument;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 1);
    IF (p_feed IS NOT NULL) THEN
    BEGIN
        SELECT f.quoted, f.sync
        FROM imq_find_feed(:p_feed) AS f
        JOIN rdb$relations AS r ON r.rdb$relation_name = f.name AND r.rdb$owner_name = CURRENT_USER
        INTO v_quoted, v_sync;
        IF (v_quoted IS NOT NULL) THEN
        BEGIN
            v_statement = 'SELECT COUNT(*) FROM (SELECT 1 AS one FROM {"table"} AS t WHERE t.{"sync"} IS NULL ROWS 10000) AS d';
            EXECUTE STATEMENT REPLACE(REPLACE(v_statement, '{"table"}', v_quoted), '{"sync"}', v_sync) INTO unpublished;
        END
        WHEN ANY DO
            -- The table was dropped or changed: unpublished stays NULL.
            unpublished = NULL;
    END
    FOR SELECT name, table_name, last_number FROM mq_feed WHERE :p_feed IS NULL OR name = :p_feed ORDER BY name
        INTO feed, table_name, last_position
    DO
    BEGIN
        FOR SELECT c.consumer, c."POSITION", :last_position - c."POSITION", c.moved_at
            FROM rdb$database
            LEFT JOIN mq_feed_consumer AS c ON c.feed = :feed
            ORDER BY c.consumer
            INTO consumer, feed_position, behind, moved_at
        DO
            SUSPEND;
    END
END
