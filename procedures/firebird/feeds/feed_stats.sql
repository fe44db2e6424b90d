-- feed_stats: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: the caller cannot read the table),
--              consumer, position, behind (last_position minus position), moved_at: one row per consumer; a feed without
--              consumers has one row
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
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_sync varchar(130) CHARACTER SET UTF8;
DECLARE v_statement mq_argument;
BEGIN
    EXECUTE PROCEDURE mq_require_name('feed', p_feed, 1);
    FOR SELECT name, table_name, last_number FROM mq_feed WHERE :p_feed IS NULL OR name = :p_feed ORDER BY name
        INTO feed, "TABLE", last_position
    DO
    BEGIN
        BEGIN
            SELECT quoted, sync FROM mq_find_feed(:feed) INTO v_quoted, v_sync;
            v_statement = 'SELECT COUNT(*) FROM (SELECT 1 AS one FROM {"table"} AS t WHERE t.{"sync"} IS NULL ROWS 10000) AS d';
            EXECUTE STATEMENT REPLACE(REPLACE(v_statement, '{"table"}', v_quoted), '{"sync"}', v_sync) INTO unpublished;
            WHEN ANY DO
                -- The table was dropped or changed, or the caller may not read it: unpublished stays NULL.
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
