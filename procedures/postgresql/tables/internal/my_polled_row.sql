-- my_polled_row: view of the entries of those polling tables that the current role may read.
-- Returns: id, name, state, active, attempts, run_at (of a claimed row: the end of its lease), ident_hash, ident,
--     key_json, consumer, error; no batch key, because its holder could finish the claim
CREATE OR REPLACE VIEW mq.my_polled_row WITH (security_barrier) AS
SELECT e.id, e.name, e.state, e.active, e.attempts, coalesce(b.lease_until, e.run_at) AS run_at, e.ident_hash, e.ident, e.key_json,
    e.consumer, e.error
FROM mq.polled_row AS e
LEFT JOIN mq.polled_batch AS b ON b.batch_key = e.batch_key
-- An array: computed once per statement, not once per row.
WHERE e.name = ANY (ARRAY(
    SELECT p.name
    FROM mq.polled AS p
    JOIN pg_namespace AS n ON n.nspname = p.table_schema
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = p.table_name
    WHERE c.relkind IN ('r', 'p') AND (c.oid = p.table_id OR p.queue_id <> 'mq.polled'::regclass)
        AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
));
