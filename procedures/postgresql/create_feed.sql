-- create_feed: make a feed of a table: its rows, numbered in the order in which they are published.
-- Arguments:   p_feed (1 to 200 characters), p_table (table or schema.table; without a schema: public), p_key_columns (names
--              with commas between; all columns of a primary key or of a unique index are among them), p_sync_column (a
--              nullable bigint with an index that begins with it)
-- Returns:     created (0: the same feed was there already)
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     SELECT mq.create_feed('orders', 'shop.orders', 'id', 'sync');

CREATE OR REPLACE FUNCTION mq.create_feed(
    p_feed text,
    p_table text,
    p_key_columns text,
    p_sync_column text,
    OUT created smallint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    -- The login, or the role that it has taken: current_user is the owner of this function.
    v_login text := coalesce(nullif(current_setting('role'), 'none'), session_user);
    v_table record;
    v_keys text[];
    v_attnums smallint[];
    v_sync record;
    v_user text;
    v_feed mq.feed;
    v_last bigint;
BEGIN
    PERFORM mq.require_name('feed', p_feed, false);
    SELECT * INTO v_table FROM mq.find_table('table', p_table);
    SELECT array_agg(c.name ORDER BY c.n), array_agg(c.attnum) INTO v_keys, v_attnums
    FROM mq.find_columns('key_columns', v_table.id, p_key_columns) AS c;
    SELECT c.*, count(*) OVER () AS number INTO v_sync
    FROM mq.find_columns('sync_column', v_table.id, p_sync_column) AS c LIMIT 1;
    IF v_sync.number > 1 OR v_sync.name = ANY (v_keys) THEN
        PERFORM mq.raise_error('invalid_argument', 'sync_column: must be one column, and none of key_columns');
    END IF;

    FOREACH v_user IN ARRAY ARRAY[v_login, current_user] LOOP
        IF NOT has_schema_privilege(v_user, v_table.schema_name, 'USAGE') THEN
            PERFORM mq.raise_error('unsuitable_table', format('%s is closed to %s: GRANT USAGE ON SCHEMA %I TO %I',
                v_table.label, v_user, v_table.schema_name, v_user));
        ELSIF NOT has_table_privilege(v_user, v_table.id, 'SELECT') OR NOT has_table_privilege(v_user, v_table.id, 'UPDATE') THEN
            PERFORM mq.raise_error('unsuitable_table', format('%s may not be read and changed by %s: '
                'GRANT SELECT, UPDATE ON %s TO %I', v_table.label, v_user, v_table.quoted, v_user));
        END IF;
    END LOOP;
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = v_table.id AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
            AND v_attnums @> (i.indkey::smallint[])[0:i.indnkeyatts - 1]
            AND NOT EXISTS (
                SELECT FROM pg_attribute AS a
                WHERE a.attrelid = v_table.id AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
                    AND NOT a.attnotnull
            )
    ) THEN
        PERFORM mq.raise_error('unsuitable_table', format('key_columns do not tell the rows of %s apart: they must hold all '
            'columns of its primary key, or of a unique index of NOT NULL columns', v_table.label));
    END IF;
    IF v_sync.type <> 'bigint' OR NOT v_sync.nullable THEN
        PERFORM mq.raise_error('unsuitable_table', format('sync_column must be a bigint that can be NULL: '
            'ALTER TABLE %s ALTER COLUMN %s TYPE bigint, ALTER COLUMN %2$s DROP NOT NULL', v_table.quoted, v_sync.quoted));
    ELSIF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam
        WHERE i.indrelid = v_table.id AND i.indkey[0] = v_sync.attnum AND i.indisvalid AND i.indpred IS NULL
            AND m.amname = 'btree'
    ) THEN
        PERFORM mq.raise_error('unsuitable_table', format('sync_column needs an index: CREATE INDEX ON %s (%s)',
            v_table.quoted, v_sync.quoted));
    END IF;

    EXECUTE format('SELECT max(%s) FROM %s', v_sync.quoted, v_table.quoted) INTO v_last;
    INSERT INTO mq.feed (name, last_number, created_at, table_schema, table_name, sync_column, key_columns)
    VALUES (p_feed, greatest(v_last, 0), clock_timestamp(), v_table.schema_name, v_table.table_name, v_sync.name, v_keys)
    ON CONFLICT DO NOTHING;
    created := FOUND::integer;
    IF created = 0 THEN
        SELECT * INTO v_feed
        FROM mq.feed AS f
        WHERE f.name = p_feed
            OR f.table_schema = v_table.schema_name AND f.table_name = v_table.table_name AND f.sync_column = v_sync.name
        ORDER BY f.name = p_feed DESC
        LIMIT 1;
        IF v_feed.name <> p_feed THEN
            PERFORM mq.raise_error('unsuitable_table', format('sync_column serves the feed %s already', v_feed.name));
        ELSIF (v_feed.table_schema, v_feed.table_name, v_feed.sync_column, v_feed.key_columns)
            IS DISTINCT FROM (v_table.schema_name, v_table.table_name, v_sync.name, v_keys) THEN
            PERFORM mq.raise_error('already_exists', format('feed: %s is a feed of other columns or of another table', p_feed));
        END IF;
    END IF;
END
$$;
