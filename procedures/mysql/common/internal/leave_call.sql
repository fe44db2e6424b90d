-- leave_call: the end of a procedure that began with join_call: commit a transaction of its own, or undo what it did.
-- Arguments:   p_own (what join_call said; NULL: it was not reached), p_undo (1: undo)
-- Returns:     nothing
-- Errors:      none
-- Transaction: never commits the caller's
-- Example:     CALL mq_leave_call(v_own, 0);

DROP PROCEDURE IF EXISTS mq_leave_call;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_leave_call(
    IN p_own tinyint,
    IN p_undo tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- A deadlock has rolled back the caller's whole transaction already, savepoints and all. In a trigger that works without a
    -- savepoint the statement that has fired it is undone by the server.
    DECLARE CONTINUE HANDLER FOR 1305, 1422 BEGIN END;
    IF p_own > 0 THEN
        IF p_undo THEN
            CALL mq_undo_call(p_own);
        ELSE
            CALL mq_end_call(p_own);
        END IF;
    ELSEIF p_own = 0 THEN
        IF p_undo THEN
            ROLLBACK TO SAVEPOINT mq_call;
        END IF;
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
