-- list_polling_tables: list the polling tables, their settings, and how many rows are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters; NULL: all)
-- Returns:     one row per polling table, by name; active, waiting and dead are counted up to 10,000
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks; does not read the polling tables themselves
-- Example:     SELECT name, "table", active, dead FROM mq.list_polling_tables();
CREATE OR REPLACE FUNCTION mq.list_polling_tables(p_name text DEFAULT NULL) RETURNS TABLE (
    name text, table_name text, key_columns text, order_column text, status_column text, ready_value text,
    active_value text, done_value text, error_value text, on_complete text, late_seconds integer, equal_rows smallint,
    max_attempts integer, active bigint, waiting bigint, dead bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq_internal.require_name('name', p_name, true);
    RETURN QUERY
        SELECT p.name, CASE p.table_schema WHEN 'public' THEN '' ELSE p.table_schema || '.' END || p.table_name,
            (SELECT string_agg(quote_ident(k.name), ', ' ORDER BY k.n) FROM unnest(p.key_columns) WITH ORDINALITY AS k (name, n)),
            p.order_column, p.status_column, p.ready_value, p.active_value, p.done_value, p.error_value, p.on_complete,
            p.late_seconds, p.equal_rows::integer::smallint, p.max_attempts::integer,
            mq_internal.count_polled(p.name, 'A'), mq_internal.count_polled(p.name, 'N'), mq_internal.count_polled(p.name, 'E')
        FROM mq.polled AS p
        WHERE p_name IS NULL OR p.name = p_name
        ORDER BY p.name;
END
$$;
