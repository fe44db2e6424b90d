-- feed_stats: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: the caller cannot read the table),
--              consumer, position, behind (last_position minus position), moved_at: one row per consumer; a feed without
--              consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT * FROM mq.feed_stats();

CREATE OR REPLACE FUNCTION mq.feed_stats(
    p_feed text DEFAULT NULL
) RETURNS TABLE (
    feed text,
    "table" text,
    last_position bigint,
    unpublished bigint,
    consumer text,
    "position" bigint,
    behind bigint,
    moved_at timestamptz
)
LANGUAGE plpgsql
SET search_path = mq, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    v_feed mq.feed;
    v_found record;
    v_unpublished bigint;
BEGIN
    PERFORM mq.require_name('feed', p_feed, true);
    FOR v_feed IN
        SELECT s.* FROM mq.feed_names() AS f (name) CROSS JOIN LATERAL mq.feed_settings(f.name) AS s
        WHERE p_feed IS NULL OR f.name = p_feed ORDER BY f.name
    LOOP
        v_unpublished := NULL;
        BEGIN
            SELECT * INTO v_found FROM mq.find_feed(v_feed.name);
            EXECUTE format('SELECT count(*) FROM (SELECT FROM %s AS t WHERE t.%s IS NULL LIMIT 10000) AS u', v_found.source,
                v_found.sync)
            INTO v_unpublished;
        EXCEPTION WHEN OTHERS THEN
            NULL;  -- the table was dropped or changed, or the caller may not read it
        END;
        RETURN QUERY
            SELECT v_feed.name, CASE v_feed.table_schema WHEN 'public' THEN '' ELSE v_feed.table_schema || '.' END
                || v_feed.table_name, v_feed.last_number, v_unpublished, c.consumer,
                c.position, v_feed.last_number - c.position, c.moved_at
            FROM (SELECT 1) AS one
            LEFT JOIN mq.feed_positions(v_feed.name, NULL) AS c ON true
            ORDER BY c.consumer;
    END LOOP;
END
$$;
