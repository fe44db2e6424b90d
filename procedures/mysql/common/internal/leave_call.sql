-- leave_call: commit or undo the work of a procedure that began with join_call.
-- Arguments:   p_own (as returned by join_call; NULL: it was not called), p_undo (1: undo)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_leave_call(IN p_own tinyint, IN p_undo tinyint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- After a deadlock the server has already rolled back the caller's whole transaction with its savepoints. In a
    -- trigger without a savepoint, the server undoes the statement that fired it.
    DECLARE CONTINUE HANDLER FOR 1305, 1422 BEGIN END;
    IF p_own > 0 THEN
        IF p_undo THEN
            CALL imq_undo_call(p_own);
        ELSE
            CALL imq_end_call(p_own);
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
END
