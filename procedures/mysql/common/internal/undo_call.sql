-- undo_call: undo the work of a procedure since begin_call; the caller's own work stays.
-- Transaction: ends the procedure's own transaction; ends the caller's only when no savepoint is possible

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_undo_call(IN p_own tinyint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- After a deadlock the server has already rolled back the caller's whole transaction with its savepoints.
    DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
    IF p_own > 0 THEN
        -- Independent of the session's completion_type. Without a savepoint only the whole transaction can be undone.
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
END
