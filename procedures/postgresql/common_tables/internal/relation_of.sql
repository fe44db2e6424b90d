-- relation_of: find a table by its name, without any right on it; NULL: there is no such table.
-- Arguments: p_any (true: also the view or foreign table in its place. Only for checks of rights: while a name is in use,
--     what is registered under it is not everybody's to delete)
CREATE OR REPLACE FUNCTION mq_internal.relation_of(p_schema text, p_name text, p_any boolean DEFAULT false) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT c.oid
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = p_schema AND c.relname = p_name
            AND (c.relkind IN ('r', 'p') OR p_any AND c.relkind IN ('v', 'm', 'f'))
    );
END
$$;
