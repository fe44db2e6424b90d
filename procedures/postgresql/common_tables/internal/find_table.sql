-- find_table: find a user's table by the name in an argument.
-- Arguments: p_table (table or schema.table, as written in SQL; the default schema is public)
-- Returns: id (its oid), kind (r, or p: partitioned), table_schema, table_name, quoted (for SQL), label (for error
--     texts: the name, with the schema unless it is public)
CREATE OR REPLACE FUNCTION mq_internal.find_table(
    p_argument text, p_table text, OUT id oid, OUT kind "char", OUT table_schema text, OUT table_name text,
    OUT quoted text, OUT label text
)
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_names text[] := mq_internal.split_names(p_argument, p_table, '.', 2);
    v_persistence "char";
BEGIN
    table_schema := CASE cardinality(v_names) WHEN 1 THEN 'public' ELSE v_names[1] END;
    table_name := v_names[cardinality(v_names)];
    quoted := format('%I.%I', table_schema, table_name);
    label := CASE table_schema WHEN 'public' THEN '' ELSE table_schema || '.' END || table_name;
    SELECT c.oid, c.relkind, c.relpersistence INTO id, kind, v_persistence
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = table_schema AND c.relname = table_name;
    IF id IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('%s: there is no table %s', p_argument, label));
    ELSIF kind NOT IN ('r', 'p') OR v_persistence = 't' THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s is not an ordinary table, but a view, a temporary table or '
            'the like', label));
    ELSIF table_schema IN ('mq', 'information_schema') OR table_schema ~ '^pg_' THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('%s is a table of the queue or of the system', label));
    END IF;
END
$$;
