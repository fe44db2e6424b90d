-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for open transactions that have published this feed
-- Example:     SELECT mq.drop_feed('orders');
--
-- To drop the feed of a table that was dropped, the role is enough. A view in its place needs the rights on the view.
CREATE OR REPLACE FUNCTION mq.drop_feed(
    p_feed text,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_feed mq.feed;
    v_table oid;
    v_written text;
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, false);
    v_feed := mq_internal.feed_settings(p_feed);
    v_table := mq_internal.relation_of(v_feed.table_schema, v_feed.table_name, true);
    v_written := mq_internal.sync_column(v_table, v_feed.sync_column);
    IF v_table IS NOT NULL THEN
        PERFORM mq_internal.require_rights(v_table, CASE v_written WHEN '' THEN 'show' ELSE 'publish' END, v_written);
    END IF;
    affected := mq_internal.delete_feed(p_feed, (
        SELECT m.pass FROM mq.my_pass AS m
        WHERE m.id = v_table AND m.need = CASE v_written WHEN '' THEN 'show' ELSE 'publish' END AND m.written = v_written
    ));
END
$$;
