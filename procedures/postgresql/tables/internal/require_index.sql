-- require_index: refuse a table whose claims would scan the whole table.
-- Arguments: p_columns (an index must begin with these, in this order; NULL: no index is needed)
CREATE OR REPLACE FUNCTION mq_internal.require_index(p_table oid, p_columns text[]) RETURNS void
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
BEGIN
    IF p_columns IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam
        CROSS JOIN LATERAL (
            SELECT array_agg(a.attname::text ORDER BY g.n) AS names, max(i.indoption[g.n]) AS high, min(i.indoption[g.n]) AS low
            FROM generate_series(0, least(i.indnkeyatts, cardinality(p_columns)) - 1) AS g (n)
            LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[g.n]
        ) AS k
        WHERE i.indrelid = p_table AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
            -- All columns ascending, or all descending: the index can be read in either direction.
            AND k.names = p_columns AND k.high = k.low AND k.low IN (0, 3)
    ) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', (
            SELECT format('without this index claims would scan the table: CREATE INDEX ON %I.%I (%s)', n.nspname, c.relname,
                (SELECT string_agg(quote_ident(w.name), ', ' ORDER BY w.n) FROM unnest(p_columns) WITH ORDINALITY AS w (name, n)))
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = p_table
        ));
    END IF;
END
$$;
