-- publish_feed: number up to p_size rows whose sync column is NULL.
-- Arguments:   p_feed (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows numbered
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's and locks the feed's counter until it ends; publishers of one feed wait for each other;
--              skips rows that writers have locked
-- Example:     SELECT mq.publish_feed('orders', 500);
CREATE OR REPLACE FUNCTION mq.publish_feed(
    p_feed text,
    p_size bigint DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_feed record;
    v_any boolean;
    v_last bigint;
    v_rows tid[];
    v_parts oid[];
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    SELECT * INTO v_feed FROM mq_internal.find_feed(p_feed, 'publish');
    affected := 0;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s AS t WHERE t.%s IS NULL)', v_feed.source, v_feed.sync) INTO v_any;
    IF NOT v_any THEN
        RETURN;
    END IF;
    -- Lock the counter before the rows: a publisher that waits here holds no row locks.
    v_last := mq_internal.lock_feed(p_feed, v_feed.pass);
    -- NO KEY UPDATE does not conflict with the row locks of foreign key checks.
    EXECUTE format('SELECT array_agg(r.ctid ORDER BY r.key), array_agg(r.tableoid ORDER BY r.key) FROM ('
        'SELECT t.ctid, t.tableoid, ROW(%s) AS key FROM %s AS t WHERE t.%s IS NULL LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED) AS r',
        v_feed.quoted, v_feed.source, v_feed.sync) INTO v_rows, v_parts
    USING coalesce(p_size, 1000);
    IF v_rows IS NULL THEN
        RETURN;
    END IF;
    -- The table's triggers must find the objects of its own schema, and none of the queue's.
    PERFORM set_config('search_path', format('pg_catalog, %I, public, pg_temp', v_feed.schema), true);
    EXECUTE format('WITH numbered AS (UPDATE %s AS t SET %s = $1 + n.number FROM ROWS FROM (pg_catalog.unnest($2), '
        'pg_catalog.unnest($3)) WITH ORDINALITY AS n (row_id, part, number) WHERE t.ctid = n.row_id AND t.tableoid = n.part '
        'RETURNING t.%2$s = $1 + n.number AS done) SELECT pg_catalog.count(*) FROM numbered WHERE done',
        v_feed.source, v_feed.sync) INTO affected
    USING v_last, v_rows, v_parts;
    PERFORM set_config('search_path', 'mq, pg_temp', true);
    IF affected < cardinality(v_rows) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('a trigger of %s prevents numbering: it must not set the sync column',
            v_feed.label));
    END IF;
    PERFORM mq_internal.move_feed(p_feed, v_feed.pass, v_last, affected);
END
$$;
