-- end_call: commit the transaction that begin_call began, at the end of a procedure.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_end_call(IN p_own tinyint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF p_own = 1 THEN
        -- Independent of the session's completion_type.
        COMMIT AND NO CHAIN NO RELEASE;
    ELSEIF p_own = 0 THEN
        RELEASE SAVEPOINT mq_call;
    END IF;
    IF @mq_safe_updates THEN
        SET SESSION sql_safe_updates = 1, @mq_safe_updates = 0;
    END IF;
    IF @mq_small_selects THEN
        SET SESSION sql_big_selects = 0, @mq_small_selects = 0;
    END IF;
END
