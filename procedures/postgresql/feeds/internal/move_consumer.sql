-- move_consumer: move a consumer's position, for a caller with the right to read the feed.
-- Arguments: p_back (false: forward only; true: back only)
-- Transaction: waits for other calls that move the same consumer
CREATE OR REPLACE FUNCTION mq_internal.move_consumer(
    p_feed text, p_consumer text, p_position bigint, p_back boolean, p_pass text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_feed mq.feed;
    v_position bigint;
BEGIN
    SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed;
    PERFORM mq_internal.require_pass(p_pass, mq_internal.relation_of(v_feed.table_schema, v_feed.table_name), 'show', '');
    IF p_back THEN
        SELECT c.position INTO v_position
        FROM mq.feed_consumer AS c WHERE c.feed = p_feed AND c.consumer = p_consumer FOR NO KEY UPDATE;
        IF (p_position BETWEEN 0 AND coalesce(v_position, 0)) IS NOT TRUE THEN
            PERFORM mq_internal.raise_error('invalid_argument', format('position: must be 0 to %s, the consumer''s position',
                coalesce(v_position, 0)));
        END IF;
        UPDATE mq.feed_consumer AS c SET position = p_position, moved_at = clock_timestamp()
        WHERE c.feed = p_feed AND c.consumer = p_consumer AND c.position > p_position;
        RETURN p_position;
    ELSIF p_position IS NULL OR p_position NOT BETWEEN 0 AND v_feed.last_number THEN
        -- A consumer past the last number would miss the rows numbered later.
        PERFORM mq_internal.raise_error('invalid_argument', format('position: must be 0 to %s, the feed''s last number',
            v_feed.last_number));
    END IF;
    INSERT INTO mq.feed_consumer AS c (feed, consumer, position, moved_at)
    VALUES (p_feed, p_consumer, p_position, clock_timestamp())
    ON CONFLICT (feed, consumer) DO UPDATE SET position = excluded.position, moved_at = excluded.moved_at
    WHERE c.position < excluded.position
    RETURNING c.position INTO v_position;
    IF v_position IS NULL THEN
        SELECT c.position INTO v_position FROM mq.feed_consumer AS c WHERE c.feed = p_feed AND c.consumer = p_consumer;
    END IF;
    RETURN v_position;
END
$$;
