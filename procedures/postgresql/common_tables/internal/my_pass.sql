-- my_pass: one proof per table and right of the current role, for the queue's own functions.
-- Arguments: none; query by id (the table's oid), need (the right) and written (the column to be written; '': none)
-- Transaction: a pass is valid only in this session's current transaction
--
-- A SECURITY DEFINER function cannot determine its caller. session_user is the login; it is not the role whose rights
-- count if autovacuum evaluates an index, or if another SECURITY DEFINER function makes the call. In a view, current_user
-- is that role. Every column is named, because a dump would name the others.
CREATE OR REPLACE VIEW mq.my_pass WITH (security_barrier) AS
SELECT c.oid AS id, n.need, n.written,
    encode(sha256(convert_to(concat_ws('/', s.word, c.oid, n.need, n.written, pg_backend_pid(), extract(epoch FROM now())),
        'UTF8')), 'hex') AS pass
FROM pg_class AS c
CROSS JOIN mq_internal.secret AS s
CROSS JOIN LATERAL (
    SELECT 'read' AS need, '' AS written
    WHERE has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
    UNION ALL
    SELECT 'show' AS need, '' AS written
    WHERE has_table_privilege(c.oid, 'SELECT')
    UNION ALL
    SELECT 'delete' AS need, '' AS written
    WHERE has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'DELETE')
        AND has_any_column_privilege(c.oid, 'UPDATE') AND NOT row_security_active(c.oid)
    UNION ALL
    SELECT w.need, a.attname::text AS written
    FROM pg_attribute AS a
    CROSS JOIN (VALUES ('write'), ('write, delete'), ('publish')) AS w (need)
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND has_table_privilege(c.oid, 'SELECT') AND has_column_privilege(c.oid, a.attnum, 'UPDATE')
        AND (w.need <> 'write, delete' OR has_table_privilege(c.oid, 'DELETE'))
        AND (w.need = 'publish' OR NOT row_security_active(c.oid))
    UNION ALL
    SELECT 'watch' AS need, '' AS written
    WHERE has_table_privilege(c.oid, 'TRIGGER')
) AS n
WHERE s.n = 1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_schema_privilege(c.relnamespace, 'USAGE');
