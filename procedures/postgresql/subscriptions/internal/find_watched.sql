-- find_watched: find the watched table that an argument names.
-- Arguments: p_table (as SQL names it; a dropped table: as messages name it)
-- Returns: label; relation (NULL: the table was dropped) and quoted (for SQL; NULL too if a view replaces the table)
CREATE OR REPLACE FUNCTION mq_internal.find_watched(p_table text, OUT label text, OUT relation oid, OUT quoted text)
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_state text;
    v_message text;
BEGIN
    BEGIN
        SELECT t.label, t.id, t.quoted INTO label, relation, quoted FROM mq_internal.find_table('table', p_table) AS t;
    EXCEPTION
        WHEN SQLSTATE '50002' OR SQLSTATE '50005' OR SQLSTATE '50006' THEN
            GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_message = MESSAGE_TEXT;
            label := p_table;
            relation := mq_internal.labelled_table(label);
    END;
    IF mq_internal.is_watched(label) THEN
        RETURN;
    END IF;
    IF v_state = '50002' THEN
        RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = v_message;
    END IF;
    PERFORM mq_internal.raise_error('not_found', format('table: %s is not watched: call watch_table first', label));
END
$$;
