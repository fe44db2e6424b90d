-- labelled_table: find what has the name of a watched table in messages.
-- Arguments: p_label (the name, with the schema and a dot before it unless that is public)
-- Returns: its oid, of a table or of the view in its place; NULL when there is nothing of that name
--
-- add_watched refuses names with dots, so a label means one table.
CREATE OR REPLACE FUNCTION mq_internal.labelled_table(p_label text) RETURNS oid
LANGUAGE plpgsql STABLE SET search_path = mq, pg_temp AS $$
DECLARE
    v_dot integer := strpos(p_label, '.');
BEGIN
    RETURN mq_internal.relation_of(CASE v_dot WHEN 0 THEN 'public' ELSE left(p_label, v_dot - 1) END, substr(p_label, v_dot + 1),
        true);
END
$$;
