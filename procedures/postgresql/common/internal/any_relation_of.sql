-- any_relation_of: find a table by its name, or the view or foreign table in its place, without any right on it.
--
-- Only for checks of rights: while a name is in use, what is registered under it is not everybody's to delete.
CREATE OR REPLACE FUNCTION mq_internal.any_relation_of(p_schema text, p_name text) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT c.oid
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = p_schema AND c.relname = p_name AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    );
END
$$;
