-- feed_positions: list the positions of a feed's consumers.
CREATE OR REPLACE FUNCTION mq_internal.feed_positions(p_feed text, p_consumer text) RETURNS TABLE (
    consumer text, "position" bigint, moved_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.consumer, c.position, c.moved_at
    FROM mq.feed_consumer AS c
    WHERE c.feed = p_feed AND (p_consumer IS NULL OR c.consumer = p_consumer);
END
$$;
