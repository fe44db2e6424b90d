-- move_feed: advance a feed's counter, for a caller with the right to publish the feed.
-- Arguments: p_last (last_number, as lock_feed returned it), p_count (numbers given)
CREATE OR REPLACE FUNCTION mq_internal.move_feed(p_feed text, p_pass text, p_last bigint, p_count bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
BEGIN
    PERFORM mq_internal.lock_feed(p_feed, p_pass);
    UPDATE mq.feed SET last_number = p_last + p_count WHERE name = p_feed AND last_number = p_last AND p_count >= 0;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('not_found', format('feed: the counter of %s is not at %s any more', p_feed, p_last));
    END IF;
END
$$;
