-- fetch_feed: return the rows after a consumer's position, in the order of their numbers.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each; a new consumer starts at the first row), p_size (1 to 10,000;
--              NULL: 100)
-- Returns:     feed_position (the row's number), row_key and row_data (JSON objects of the key columns, and of all)
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks; returns the same rows again until advance_feed moves the position
-- Example:     SELECT * FROM mq.fetch_feed('orders', 'search', 100);
CREATE OR REPLACE FUNCTION mq.fetch_feed(
    p_feed text,
    p_consumer text,
    p_size bigint DEFAULT NULL
) RETURNS TABLE (
    feed_position bigint,
    row_key text,
    row_data text
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET timezone = 'UTC' SET extra_float_digits = 1
SET intervalstyle = 'postgres' SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    v_feed record;
    v_position bigint;
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, false);
    PERFORM mq_internal.require_name('consumer', p_consumer, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    -- Read the counter before the rows: all numbers up to it are committed, and no row above it is read.
    SELECT * INTO v_feed FROM mq_internal.find_feed(p_feed, 'show');
    SELECT c.position INTO v_position FROM mq_internal.feed_positions(p_feed, p_consumer) AS c;
    RETURN QUERY EXECUTE format(
        'SELECT t.%s, %s, %s FROM %s AS t WHERE t.%1$s > $1 AND t.%1$s <= $2 ORDER BY t.%1$s LIMIT $3',
        v_feed.sync, mq_internal.row_json(v_feed.id, v_feed.keys, 't'), mq_internal.row_json(v_feed.id, NULL, 't'), v_feed.source)
    USING coalesce(v_position, 0), v_feed.last_number, coalesce(p_size, 100);
END
$$;
