-- list_feeds: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table_name, last_position, unpublished (counted up to 10,000, only if p_feed is given and its table belongs
--              to the caller; otherwise NULL), consumer, feed_position, behind (by how much), moved_at: one row
--              per consumer; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT * FROM mq.list_feeds('orders');
--
-- A count of another user's table could run that user's code with the rights of the caller: a policy or the expression of
-- an index.
CREATE OR REPLACE FUNCTION mq.list_feeds(p_feed text DEFAULT NULL) RETURNS TABLE (
    feed text,
    table_name text,
    last_position bigint,
    unpublished bigint,
    consumer text,
    feed_position bigint,
    behind bigint,
    moved_at timestamptz
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_feed mq.feed;
    v_own record;
    v_unpublished bigint;
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, true);
    v_feed := mq_internal.feed_settings(p_feed);
    SELECT c.oid AS id, CASE c.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END
        || format('%I.%I', v_feed.table_schema, v_feed.table_name) AS source INTO v_own
    FROM pg_class AS c
    WHERE c.oid = mq_internal.relation_of(v_feed.table_schema, v_feed.table_name) AND pg_get_userbyid(c.relowner) = current_user
        AND mq_internal.sync_column(c.oid, v_feed.sync_column) <> '' AND has_table_privilege(c.oid, 'SELECT')
        AND has_schema_privilege(c.relnamespace, 'USAGE');
    IF FOUND THEN
        -- With this lock the name keeps its meaning.
        EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', v_own.source);
        IF mq_internal.relation_of(v_feed.table_schema, v_feed.table_name) = v_own.id THEN
            EXECUTE format('SELECT count(*) FROM (SELECT FROM %s AS t WHERE t.%I IS NULL LIMIT 10000) AS u', v_own.source,
                v_feed.sync_column) INTO v_unpublished;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM mq_internal.show_feeds(p_feed, v_unpublished);
END
$$;
