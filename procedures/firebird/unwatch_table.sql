-- unwatch_table: take a table's trigger and subscriptions away.
-- Arguments:   p_table (as SQL names it; that of a table that was dropped also as messages named it)
-- Returns:     the statement that drops the trigger, which is empty and inactive after this call: to be executed after its
--              commit; no row where the table was dropped
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq_unwatch_table('stock');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_unwatch_table (
    p_table mq_text
)
RETURNS (
    statement mq_text
)
AS
DECLARE v_id integer;
DECLARE v_trigger varchar(31) CHARACTER SET UTF8;
DECLARE v_table varchar(63) CHARACTER SET UTF8;
BEGIN
    SELECT w.id FROM mq_find_watched(:p_table) AS w INTO v_id;
    DELETE FROM mq_subscription AS s WHERE s.watched = :v_id;
    DELETE FROM mq_watched AS w WHERE w.id = :v_id;
    v_trigger = 'MQ_WATCH_' || v_id;
    -- It has gone with its table, if that was dropped.
    SELECT TRIM(rdb$relation_name) FROM rdb$triggers WHERE rdb$trigger_name = :v_trigger INTO v_table;
    IF (v_table IS NOT NULL) THEN
    BEGIN
        BEGIN
            EXECUTE STATEMENT 'CREATE OR ALTER TRIGGER ' || v_trigger || ' FOR "' || REPLACE(v_table, '"', '""')
                || '" INACTIVE AFTER INSERT OR UPDATE OR DELETE POSITION 0 AS BEGIN END';
            -- Whoever may not alter the table leaves a trigger that looks and finds no subscription.
            WHEN GDSCODE no_priv, GDSCODE dyn_no_priv DO
                v_table = NULL;
        END
        statement = 'DROP TRIGGER ' || v_trigger;
        SUSPEND;
    END
END^

SET TERM ; ^
