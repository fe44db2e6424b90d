-- lock_feed: lock a feed's counter, for a caller with the right to publish the feed.
-- Transaction: publishers of one feed wait for each other
CREATE OR REPLACE FUNCTION mq_internal.lock_feed(p_feed text, p_pass text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_feed mq.feed;
BEGIN
    SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed;
    IF FOUND THEN
        PERFORM mq_internal.require_pass(p_pass, mq_internal.relation_of(v_feed.table_schema, v_feed.table_name), 'publish', v_feed.sync_column);
        SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed FOR NO KEY UPDATE;
    END IF;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('not_found', format('feed: there is no feed %s', p_feed));
    END IF;
    RETURN v_feed.last_number;
END
$$;
