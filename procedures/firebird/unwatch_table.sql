-- unwatch_table: take a table's trigger and subscriptions away.
-- Arguments:   p_table (as SQL names it; that of a table that was dropped also as messages named it)
-- Returns:     no row where the caller may alter the table, else the statement that its owner may execute: until then the trigger
--              does nothing
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
BEGIN
    SELECT w.id FROM mq_find_watched(:p_table) AS w INTO v_id;
    DELETE FROM mq_subscription AS s WHERE s.watched = :v_id;
    DELETE FROM mq_watched AS w WHERE w.id = :v_id;
    v_trigger = 'MQ_WATCH_' || v_id;
    -- It has gone with its table, if that was dropped.
    IF (EXISTS (SELECT 1 FROM rdb$triggers WHERE rdb$trigger_name = :v_trigger)) THEN
    BEGIN
        EXECUTE STATEMENT 'DROP TRIGGER ' || v_trigger;
        WHEN GDSCODE no_priv, GDSCODE dyn_no_priv DO
            statement = 'DROP TRIGGER ' || v_trigger;
    END
    IF (statement IS NOT NULL) THEN
        SUSPEND;
END^

SET TERM ; ^
