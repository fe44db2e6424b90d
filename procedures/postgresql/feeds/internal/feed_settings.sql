-- feed_settings: return a feed's settings, which every caller may read: they hold no data of the table.
CREATE OR REPLACE FUNCTION mq_internal.feed_settings(p_feed text) RETURNS mq.feed
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_feed mq.feed;
BEGIN
    SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed;
    RETURN v_feed;
END
$$;
