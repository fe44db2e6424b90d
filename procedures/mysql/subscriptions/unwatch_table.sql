-- unwatch_table: delete a table's subscriptions, and return the statements that drop its triggers.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it)
-- Returns:     statement: the caller must execute these, in this order, because a procedure cannot drop triggers. Until then
--              the triggers send nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; executing the returned statements commits
-- Example:     CALL mq_unwatch_table('stock');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_unwatch_table(IN p_table longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_label, v_quoted longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_begin_call(0, v_own);
    CALL imq_find_watched(p_table, 'Trigger', v_label, v_quoted);
    DELETE FROM mq_watched WHERE label = v_label;
    DELETE FROM mq_subscription WHERE label = v_label;
    CALL imq_end_call(v_own);
    SELECT CONCAT('DROP TRIGGER IF EXISTS `', REPLACE(t.trigger_schema, '`', '``'), '`.`', REPLACE(t.trigger_name, '`', '``'), '`') AS statement
    FROM information_schema.triggers AS t
    WHERE CONCAT('`', REPLACE(t.event_object_schema, '`', '``'), '`.`', REPLACE(t.event_object_table, '`', '``'), '`') = v_quoted
        AND t.trigger_name LIKE 'mq\_%' AND t.definer = 'mq_owner@localhost'
        AND (t.action_statement LIKE CONCAT('%`', REPLACE(DATABASE(), '`', '``'), '`.imq\_send\_changes(%')
            OR t.trigger_schema = DATABASE() AND t.action_statement LIKE '%CALL imq\_send\_changes(%')
    ORDER BY t.trigger_name;
END
