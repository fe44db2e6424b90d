-- delete_feed: delete a feed and its consumers, for a caller with the right to publish the feed.
-- Arguments: p_feed, p_pass (see my_pass): for reading if the sync column is gone; not needed if the table is gone
-- Transaction: waits for open transactions that have published this feed
CREATE OR REPLACE FUNCTION mq_internal.delete_feed(p_feed text, p_pass text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_feed mq.feed;
    v_table oid;
    v_written text;
BEGIN
    SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed;
    v_table := mq_internal.relation_of(v_feed.table_schema, v_feed.table_name, true);
    IF v_table IS NOT NULL THEN
        v_written := mq_internal.sync_column(v_table, v_feed.sync_column);
        PERFORM mq_internal.require_pass(p_pass, v_table, CASE v_written WHEN '' THEN 'show' ELSE 'publish' END, v_written);
    END IF;
    DELETE FROM mq.feed WHERE name = p_feed;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM mq.feed_consumer WHERE feed = p_feed;
    RETURN 1;
END
$$;
