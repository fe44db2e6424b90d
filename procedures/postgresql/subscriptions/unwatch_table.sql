-- unwatch_table: drop a table's triggers and delete its subscriptions.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it)
-- Returns:     no rows when the call has dropped the triggers, which only the table's owner can. To others with the right
--              to create triggers, statement: the owner must execute these; until then the triggers send nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for transactions that use the table, and they wait for its end
-- Example:     SELECT * FROM mq.unwatch_table('stock');
CREATE OR REPLACE FUNCTION mq.unwatch_table(p_table text) RETURNS TABLE (statement text)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_watched record;
    v_name text;
BEGIN
    SELECT * INTO v_watched FROM mq_internal.find_watched(p_table);
    IF v_watched.relation IS NOT NULL THEN
        PERFORM mq_internal.require_rights(v_watched.relation, 'watch', '');
        FOR v_name IN
            SELECT t.tgname FROM pg_trigger AS t
            WHERE v_watched.quoted IS NOT NULL AND t.tgrelid = v_watched.relation
                AND t.tgfoid = 'mq_internal.report_changes()'::regprocedure
            ORDER BY t.tgname
        LOOP
            BEGIN
                EXECUTE format('DROP TRIGGER %I ON %s', v_name, v_watched.quoted);
            EXCEPTION
                WHEN insufficient_privilege THEN
                    statement := format('DROP TRIGGER %I ON %s', v_name, v_watched.quoted);
                    RETURN NEXT;
            END;
        END LOOP;
    END IF;
    PERFORM mq_internal.drop_watched(v_watched.label, (
        SELECT m.pass FROM mq.my_pass AS m WHERE m.id = v_watched.relation AND m.need = 'watch'
    ));
END
$$;
