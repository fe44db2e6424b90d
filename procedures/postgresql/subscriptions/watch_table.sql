-- watch_table: create the triggers that send messages when a table changes; another call repairs them.
-- Arguments:   p_table (as SQL names it; it needs a primary key)
-- Returns:     statement: no rows, because this call creates the triggers
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for transactions that have written to the table, and writers wait for its end
-- Example:     SELECT * FROM mq.watch_table('stock');
CREATE OR REPLACE FUNCTION mq.watch_table(p_table text) RETURNS TABLE (statement text)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_table record;
    v_keys text[];
BEGIN
    SELECT * INTO v_table FROM mq_internal.find_table('table', p_table);
    v_keys := mq_internal.primary_key(v_table.id);
    IF v_keys IS NULL THEN
        PERFORM mq_internal.raise_error('unsuitable_table', v_table.label || ' has no primary key: messages identify rows by it');
    END IF;
    -- A trigger reads all that is written to the table: the caller must have the right to create one.
    PERFORM mq_internal.require_rights(v_table.id, 'watch', '');
    PERFORM mq_internal.add_watched(v_table.label, v_table.table_schema, v_table.table_name, (
        SELECT m.pass FROM mq.my_pass AS m WHERE m.id = v_table.id AND m.need = 'watch' AND m.written = ''
    ));
    -- One trigger per action: PostgreSQL allows transition tables only for a single action.
    EXECUTE format('CREATE OR REPLACE TRIGGER mq_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS new_rows'
        ' FOR EACH STATEMENT EXECUTE FUNCTION mq_internal.report_changes()', v_table.quoted);
    EXECUTE format('CREATE OR REPLACE TRIGGER mq_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows'
        ' FOR EACH STATEMENT EXECUTE FUNCTION mq_internal.report_changes()', v_table.quoted);
    EXECUTE format('CREATE OR REPLACE TRIGGER mq_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows'
        ' FOR EACH STATEMENT EXECUTE FUNCTION mq_internal.report_changes()', v_table.quoted);
END
$$;
