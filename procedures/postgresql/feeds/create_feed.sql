-- create_feed: create a feed from a table: its rows, numbered in the order in which they are published.
-- Arguments:   p_feed (1 to 200 characters), p_table (table or schema.table; default schema: public), p_key_columns (1 to
--              100 names separated by commas; they include all columns of a primary key or unique index), p_sync_column (a
--              bigint column that allows NULL; an index begins with it)
-- Returns:     created: 1; 0 when the same feed already exists
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     SELECT mq.create_feed('orders', 'shop.orders', 'id', 'sync');
CREATE OR REPLACE FUNCTION mq.create_feed(
    p_feed text,
    p_table text,
    p_key_columns text,
    p_sync_column text,
    OUT created smallint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_table record;
    v_keys text[];
    v_attnums smallint[];
    v_sync record;
    v_feed mq.feed;
    v_last bigint;
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, false);
    SELECT * INTO v_table FROM mq_internal.find_table('table', p_table);
    SELECT array_agg(c.name ORDER BY c.n), array_agg(c.attnum) INTO v_keys, v_attnums
    FROM mq_internal.find_columns('key_columns', v_table.id, p_key_columns) AS c;
    -- Most tables lack this column at first: the error contains the statement that adds it.
    IF NOT EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = v_table.id AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attname = ANY (mq_internal.split_names('sync_column', p_sync_column, ',', 100))
    ) THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('sync_column: the table has no column %s: ALTER TABLE %s ADD COLUMN %1$s '
            'bigint; CREATE INDEX ON %2$s (%1$s)', p_sync_column, v_table.quoted));
    END IF;
    SELECT c.*, count(*) OVER () AS number INTO v_sync
    FROM mq_internal.find_columns('sync_column', v_table.id, p_sync_column) AS c LIMIT 1;
    IF v_sync.number > 1 OR v_sync.name = ANY (v_keys) THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'sync_column: must be one column that is not in key_columns');
    END IF;

    PERFORM mq_internal.require_rights(v_table.id, 'publish', v_sync.name);
    IF row_security_active(v_table.id) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s has row security that hides rows from %s: numbers of hidden rows '
            'would be given again. Create the feed as the owner of the table or a role with BYPASSRLS', v_table.label, current_user));
    END IF;
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
        PERFORM mq_internal.raise_error('unsuitable_table', format('key_columns: must include all columns of the primary key of %s, '
            'or of a unique index of NOT NULL columns', v_table.label));
    END IF;
    IF v_sync.type = 'bigint' AND mq_internal.sync_column(v_table.id, v_sync.name) = '' THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('sync_column: must not be a generated column: '
            'ALTER TABLE %s ADD COLUMN sync bigint', v_table.quoted));
    ELSIF v_sync.type <> 'bigint' OR NOT v_sync.nullable THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('sync_column: must be a bigint column that allows NULL: '
            'ALTER TABLE %s ALTER COLUMN %s TYPE bigint, ALTER COLUMN %2$s DROP NOT NULL', v_table.quoted, v_sync.quoted));
    ELSIF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam
        WHERE i.indrelid = v_table.id AND i.indkey[0] = v_sync.attnum AND i.indisvalid AND i.indpred IS NULL
            AND m.amname = 'btree'
    ) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('sync_column: needs an index: CREATE INDEX ON %s (%s)',
            v_table.quoted, v_sync.quoted));
    END IF;

    EXECUTE format('SELECT max(%s) FROM %s', v_sync.quoted, v_table.quoted) INTO v_last;
    v_feed := ROW(p_feed, greatest(v_last, 0), NULL, v_table.table_schema, v_table.table_name, v_sync.name, v_keys);
    created := mq_internal.add_feed(v_feed, (
        SELECT m.pass FROM mq.my_pass AS m WHERE m.id = v_table.id AND m.need = 'publish' AND m.written = v_sync.name
    ));
END
$$;
