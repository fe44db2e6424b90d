-- show_feeds: return the rows of list_feeds, which every caller may read: they hold no data of the tables.
-- Arguments: p_unpublished (for the column of that name)
CREATE OR REPLACE FUNCTION mq_internal.show_feeds(p_feed text, p_unpublished bigint) RETURNS TABLE (
    feed text, table_name text, last_position bigint, unpublished bigint, consumer text, feed_position bigint, behind bigint,
    moved_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT f.name, CASE f.table_schema WHEN 'public' THEN '' ELSE f.table_schema || '.' END || f.table_name, f.last_number,
        p_unpublished, c.consumer, c.position, f.last_number - c.position, c.moved_at
    FROM mq.feed AS f
    LEFT JOIN mq.feed_consumer AS c ON c.feed = f.name
    WHERE p_feed IS NULL OR f.name = p_feed
    ORDER BY f.name, c.consumer;
END
$$;
