-- undo_call: undo what a procedure did since begin_call; the caller's own work stays.
-- Arguments:   p_own (what begin_call said; NULL: it was not reached)
-- Returns:     nothing
-- Errors:      none
-- Transaction: ends one of our own, and the caller's when there can be no savepoint
-- Example:     CALL mq_undo_call(v_own);

DROP PROCEDURE IF EXISTS mq_undo_call;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_undo_call(
    IN p_own tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- A deadlock has rolled back the caller's whole transaction already, savepoints and all.
    DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
    IF p_own > 0 THEN
        -- Whatever the session's completion_type says. Without a savepoint nothing less can be undone.
        ROLLBACK AND NO CHAIN NO RELEASE;
    ELSEIF p_own = 0 THEN
        ROLLBACK TO SAVEPOINT mq_call;
        RELEASE SAVEPOINT mq_call;
    END IF;
    IF @mq_safe_updates THEN
        SET SESSION sql_safe_updates = 1, @mq_safe_updates = 0;
    END IF;
    IF @mq_small_selects THEN
        SET SESSION sql_big_selects = 0, @mq_small_selects = 0;
    END IF;
END//

DELIMITER ;
