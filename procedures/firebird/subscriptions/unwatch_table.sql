-- unwatch_table: delete a table's subscriptions, and return the statement that disables its trigger.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it)
-- Returns:     statement: a user who may alter the table must execute it after the commit; until then the trigger sends
--              nothing. No row when the table was dropped
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq_unwatch_table('stock');
--
-- The trigger is not changed here: a session that first uses the table meanwhile would load the uncommitted change, and
-- after a rollback continue without the trigger. It must not be dropped while others write: writers that are about to fire
-- it may find its rights gone.

CREATE OR ALTER PROCEDURE mq_unwatch_table (
    p_table mq_text
)
RETURNS (statement mq_text)
AS
DECLARE v_id integer;
DECLARE v_label mq_name;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_trigger varchar(31) CHARACTER SET UTF8;
BEGIN
    SELECT w.id, w.label, w.quoted FROM imq_find_watched(:p_table) AS w INTO v_id, v_label, v_quoted;
    -- The rights that ALTER TRIGGER needs: those of the table's owner, an administrator or the right to alter any table.
    IF (v_quoted IS NOT NULL AND CURRENT_USER <> 'SYSDBA' AND CURRENT_ROLE <> 'RDB$ADMIN'
        AND NOT EXISTS (
            SELECT 1 FROM rdb$relations AS r
            WHERE r.rdb$relation_name IN (:v_label, 'RDB$DATABASE') AND r.rdb$owner_name = CURRENT_USER
        )
        AND NOT EXISTS (
            SELECT 1 FROM rdb$user_privileges AS p
            WHERE p.rdb$relation_name = 'SQL$TABLES' AND p.rdb$privilege = 'L' AND p.rdb$user IN (CURRENT_USER, CURRENT_ROLE)
        )) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', TRIM(CURRENT_USER) || ' may not alter ' || v_quoted
            || ': its owner must call unwatch_table');
    DELETE FROM mq_subscription AS s WHERE s.watched = :v_id;
    DELETE FROM mq_watched AS w WHERE w.id = :v_id;
    v_trigger = 'MQ_WATCH_' || v_id;
    IF (EXISTS (SELECT 1 FROM rdb$triggers WHERE rdb$trigger_name = :v_trigger)) THEN
    BEGIN
        statement = 'ALTER TRIGGER ' || v_trigger || ' INACTIVE AS BEGIN END';
        SUSPEND;
    END
END
