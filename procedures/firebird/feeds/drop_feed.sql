-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for open transactions that have published this feed; a NO WAIT transaction waits
--              two seconds, then fails with a lock conflict
-- Example:     SELECT * FROM mq_drop_feed('orders');
--
-- To drop the feed of a table that was dropped, the role is enough. A view in its place needs SELECT on the view.

CREATE OR ALTER PROCEDURE mq_drop_feed (
    p_feed mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_sync varchar(130) CHARACTER SET UTF8;
DECLARE v_last bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE imq_lock_row('feed', p_feed, NULL) RETURNING_VALUES v_last;
    -- Firebird 3.0 could miss a row that is not locked: see lock_row.
    SELECT '"' || REPLACE(f.table_name, '"', '""') || '"',
        IIF(r.rdb$view_blr IS NULL AND imq_is_sync_column(f.table_name, f.sync_column) = 1, '"' || REPLACE(f.sync_column, '"', '""') || '"', NULL)
    FROM mq_feed AS f
    JOIN rdb$relations AS r ON r.rdb$relation_name = f.table_name
    WHERE f.name = :p_feed
    INTO v_quoted, v_sync;
    IF (v_quoted IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_sync, 0);
    DELETE FROM mq_feed WHERE name = :p_feed;
    affected = ROW_COUNT;
    DELETE FROM mq_feed_consumer WHERE feed = :p_feed;
    SUSPEND;
END
