-- relation_of: find a table by its name, without any right on it.
CREATE OR REPLACE FUNCTION mq_internal.relation_of(p_schema text, p_name text) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT c.oid
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = p_schema AND c.relname = p_name AND c.relkind IN ('r', 'p')
    );
END
$$;
