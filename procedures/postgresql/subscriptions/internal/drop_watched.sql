-- drop_watched: delete a watched table and its subscriptions, for a caller with the right to create triggers on it.
-- Arguments: p_pass (see my_pass; not needed if the table is gone)
CREATE OR REPLACE FUNCTION mq_internal.drop_watched(p_label text, p_pass text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_table oid := mq_internal.labelled_table(p_label);
BEGIN
    IF v_table IS NOT NULL THEN
        PERFORM mq_internal.require_pass(p_pass, v_table, 'watch', '');
    END IF;
    DELETE FROM mq.watched WHERE label = p_label;
END
$$;
