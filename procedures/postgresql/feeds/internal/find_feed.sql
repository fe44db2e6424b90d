-- find_feed: return a feed, with its table and columns ready for SQL, for a caller with a right on the table.
-- Arguments: p_need (show or publish: see my_pass)
-- Returns: last_number, id (the table's oid), label, source (the table, for FROM), sync (the column, quoted), keys
--     (names), quoted (the keys of a row t, quoted, separated by commas), schema, pass (see my_pass)
CREATE OR REPLACE FUNCTION mq_internal.find_feed(
    p_feed text, p_need text, OUT last_number bigint, OUT id oid, OUT label text, OUT source text, OUT sync text,
    OUT keys text[], OUT quoted text, OUT schema text, OUT pass text
)
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_feed mq.feed;
    v_found record;
    v_lost text;
BEGIN
    v_feed := mq_internal.feed_settings(p_feed);
    IF v_feed.name IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('feed: there is no feed %s', p_feed));
    END IF;
    last_number := v_feed.last_number;
    keys := v_feed.key_columns;
    SELECT * INTO v_found FROM mq_internal.find_table('table', format('%I.%I', v_feed.table_schema, v_feed.table_name));
    id := v_found.id;
    label := v_found.label;
    -- ONLY: the unique index does not cover rows of inheriting tables.
    source := CASE v_found.kind WHEN 'p' THEN '' ELSE 'ONLY ' END || v_found.quoted;
    sync := quote_ident(v_feed.sync_column);
    schema := v_feed.table_schema;
    SELECT c.name INTO v_lost
    FROM unnest(keys || v_feed.sync_column) AS c (name)
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute AS a WHERE a.attrelid = v_found.id AND a.attname = c.name AND a.attnum > 0
    ) OR c.name = v_feed.sync_column AND mq_internal.sync_column(v_found.id, c.name) = ''
    LIMIT 1;
    IF v_lost IS NOT NULL THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s has no column %s any more%s: drop_feed, then create_feed again',
            label, v_lost, CASE v_lost WHEN v_feed.sync_column THEN ', or it is computed or no bigint' ELSE '' END));
    END IF;
    PERFORM mq_internal.require_rights(v_found.id, p_need, CASE p_need WHEN 'publish' THEN v_feed.sync_column ELSE '' END);
    pass := (
        SELECT m.pass FROM mq.my_pass AS m
        WHERE m.id = v_found.id AND m.need = p_need AND m.written = CASE p_need WHEN 'publish' THEN v_feed.sync_column ELSE '' END
    );
    SELECT string_agg(format('t.%I', c.name), ', ' ORDER BY c.n) INTO quoted
    FROM unnest(keys) WITH ORDINALITY AS c (name, n);
END
$$;
