-- add_feed: store a new feed, for a caller with the right to publish it.
-- Transaction: must be READ COMMITTED
CREATE OR REPLACE FUNCTION mq_internal.add_feed(p_new mq.feed, p_pass text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_feed mq.feed;
BEGIN
    PERFORM mq_internal.require_pass(p_pass, mq_internal.relation_of(p_new.table_schema, p_new.table_name), 'publish', p_new.sync_column);
    -- A snapshot could have shown an older highest number.
    PERFORM mq_internal.require_read_committed();
    p_new.created_at := clock_timestamp();
    INSERT INTO mq.feed SELECT p_new.* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN 1;
    END IF;
    SELECT * INTO v_feed
    FROM mq.feed AS f
    WHERE f.name = p_new.name
        OR f.table_schema = p_new.table_schema AND f.table_name = p_new.table_name AND f.sync_column = p_new.sync_column
    ORDER BY f.name = p_new.name DESC
    LIMIT 1;
    IF v_feed.name <> p_new.name THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('sync_column: already used by feed %s', v_feed.name));
    ELSIF (v_feed.table_schema, v_feed.table_name, v_feed.sync_column, v_feed.key_columns)
        IS DISTINCT FROM (p_new.table_schema, p_new.table_name, p_new.sync_column, p_new.key_columns) THEN
        PERFORM mq_internal.raise_error('already_exists', format('feed: %s exists with other columns or another table: drop_feed first',
            p_new.name));
    END IF;
    RETURN 0;
END
$$;
