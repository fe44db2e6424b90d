-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     count: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for open transactions that have published this feed; a NO WAIT transaction waits
--              two seconds, then fails with a lock conflict
-- Example:     SELECT * FROM mq_drop_feed('orders');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_feed (
    p_feed mq_argument
)
RETURNS (
    "COUNT" bigint
)
AS
DECLARE v_last bigint;
BEGIN
    EXECUTE PROCEDURE mq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE mq_lock_row('feed', p_feed, NULL) RETURNING_VALUES v_last;
    DELETE FROM mq_feed WHERE name = :p_feed;
    "COUNT" = ROW_COUNT;
    DELETE FROM mq_feed_consumer WHERE feed = :p_feed;
    SUSPEND;
END^

SET TERM ; ^
