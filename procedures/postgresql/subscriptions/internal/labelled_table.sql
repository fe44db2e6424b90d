-- labelled_table: find a table by its name in messages.
-- Arguments:   p_label (the name, with the schema and a dot before it unless that is public)
-- Returns:     its oid; NULL when there is no such table
-- Errors:      50006 unsuitable_table: a dot in a name makes two tables look the same
-- Transaction: reads the catalog only
-- Example:     SELECT mq.labelled_table('shop.stock');

CREATE OR REPLACE FUNCTION mq.labelled_table(
    p_label text
) RETURNS oid
LANGUAGE plpgsql
STABLE
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_tables oid[];
BEGIN
    SELECT array_agg(c.oid) INTO v_tables
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname = p_label AND c.relkind IN ('r', 'p');
    IF cardinality(v_tables) > 1 THEN
        PERFORM mq.raise_error('unsuitable_table', format('messages cannot distinguish two tables with the name %s: rename one',
            p_label));
    END IF;
    RETURN v_tables[1];
END
$$;
