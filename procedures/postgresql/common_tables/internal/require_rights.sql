-- require_rights: refuse a caller without the right that its call needs on a table, or that sees only some of its rows.
-- Arguments: p_need (a need of my_pass), p_written (the column that is written; '': none)
CREATE OR REPLACE FUNCTION mq_internal.require_rights(p_table oid, p_need text, p_written text) RETURNS void
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_table record;
    v_rights text := CASE WHEN p_need = 'watch' THEN 'TRIGGER' WHEN p_need IN ('read', 'show') THEN 'SELECT'
        WHEN p_need IN ('write', 'publish') THEN 'SELECT, UPDATE' ELSE 'SELECT, UPDATE, DELETE' END;
    v_schema boolean;
BEGIN
    SELECT n.nspname AS schema, format('%I.%I', n.nspname, c.relname) AS quoted INTO v_table
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = p_table;
    v_schema := has_schema_privilege(v_table.schema, 'USAGE');
    IF NOT (v_schema AND has_table_privilege(p_table, CASE p_need WHEN 'watch' THEN 'TRIGGER' ELSE 'SELECT' END)
        AND (p_need NOT LIKE '%delete' OR has_table_privilege(p_table, 'DELETE') AND has_any_column_privilege(p_table, 'UPDATE'))
        AND (p_need NOT LIKE 'write%' AND p_need <> 'publish' OR has_column_privilege(p_table, p_written, 'UPDATE')))
    THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s must hold %s on %s: GRANT %2$s ON %3$s TO %I', current_user, v_rights,
            v_table.quoted, current_user) || CASE WHEN v_schema THEN '' ELSE format('; GRANT USAGE ON SCHEMA %I TO %I',
            v_table.schema, current_user) END);
    ELSIF p_need NOT IN ('show', 'publish', 'watch') AND row_security_active(p_table) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('row security on %s hides rows from %s, and the queue would treat hidden rows '
            'as deleted: use a role with BYPASSRLS, or the owner of the table', v_table.quoted, current_user));
    END IF;
END
$$;
