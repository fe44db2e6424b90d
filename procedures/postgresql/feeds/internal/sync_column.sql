-- sync_column: whether a table still has the sync column of its feed.
-- Returns: the name; '': there is no such column, or it is computed or has another type than bigint
--
-- A computed column and a domain's CHECK are programs of the table's owner.
CREATE OR REPLACE FUNCTION mq_internal.sync_column(p_table oid, p_name text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((
        SELECT a.attname FROM pg_attribute AS a
        WHERE a.attrelid = p_table AND a.attname = p_name AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attgenerated = '' AND a.atttypid = 'bigint'::regtype
    ), '');
END
$$;
