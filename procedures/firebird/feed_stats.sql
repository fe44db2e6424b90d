-- feed_stats: each feed with its consumers and how far they are.
-- Arguments:   p_feed (NULL: all)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: its table cannot be read), consumer,
--              position, behind, moved_at; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT * FROM mq_feed_stats;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_feed_stats (
    p_feed mq_argument = NULL
)
RETURNS (
    feed mq_name,
    "TABLE" varchar(63) CHARACTER SET UTF8,
    last_position bigint,
    unpublished bigint,
    consumer mq_name,
    "POSITION" bigint,
    behind bigint,
    moved_at timestamp
)
AS
BEGIN
    EXECUTE PROCEDURE mq_require_name('feed', p_feed, 1);
    FOR SELECT name, table_name, last_number FROM mq_feed WHERE :p_feed IS NULL OR name = :p_feed ORDER BY name
        INTO feed, "TABLE", last_position
    DO
    BEGIN
        BEGIN
            SELECT u.number
            FROM mq_find_feed(:feed) AS f
            LEFT JOIN mq_use_table('SELECT COUNT(*), NULL, NULL FROM (SELECT 1 AS one FROM ' || f.quoted || ' AS t WHERE t.' || f.sync
                || ' IS NULL ROWS 10000) AS d', NULL, NULL, NULL) AS u ON 1 = 1
            INTO unpublished;
            WHEN ANY DO
                -- Dropped, changed or closed to us: the rest is told all the same.
                unpublished = NULL;
        END
        FOR SELECT c.consumer, c."POSITION", :last_position - c."POSITION", c.moved_at
            FROM rdb$database
            LEFT JOIN mq_feed_consumer AS c ON c.feed = :feed
            ORDER BY c.consumer
            INTO consumer, "POSITION", behind, moved_at
        DO
            SUSPEND;
    END
END^

SET TERM ; ^
