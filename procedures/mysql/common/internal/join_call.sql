-- join_call: the start of a procedure that a trigger may call: join the transaction that is open, if one is.
-- Arguments:   p_trigger (1: MariaDB's triggers and functions, where there can be no savepoint)
-- Returns:     p_own: 0 when it works under a savepoint of the caller's transaction, 2 when it works in it and there can be no
--              savepoint, 1 when none is open: then call begin_call
-- Errors:      none
-- Transaction: begins none: what a trigger calls may hold no statement that begins or commits, even if it is never reached
-- Example:     CALL mq_join_call(0, v_own); IF v_own = 1 THEN CALL mq_begin_call(0, v_own); END IF; ... CALL mq_leave_call(v_own, 0);
--
-- With autocommit each statement of a procedure would commit alone. Whether a transaction is open shows in a savepoint:
-- outside of one it is forgotten at once, and releasing it is error 1305 (measured on MySQL 9.7 and MariaDB 10.11, 11.8).
-- On MariaDB a savepoint in a trigger makes the server forget where the statement began that has fired it: when that
-- fails, its rows stay.

DROP PROCEDURE IF EXISTS mq_join_call;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_join_call(
    IN p_trigger tinyint,
    OUT p_own tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SET p_own = IF(p_trigger, 2, 0);
    IF NOT p_trigger THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR 1305 SET p_own = 1;
            -- MariaDB, after the transaction has read one of the server's own tables: see require_use.
            DECLARE EXIT HANDLER FOR 1178 SET p_own = 2;
            SAVEPOINT mq_call;
            RELEASE SAVEPOINT mq_call;
        END;
    END IF;
    SET @mq_joined = p_own <> 1;
    IF p_own = 0 THEN
        SAVEPOINT mq_call;
    END IF;
    -- With --safe-updates MariaDB refuses deletes by key that are joined to a list, and MySQL such updates of small tables;
    -- the end of the call sets it again.
    IF @@SESSION.sql_safe_updates THEN
        SET SESSION sql_safe_updates = 0, @mq_safe_updates = 1;
    END IF;
    -- Otherwise max_join_size refuses a statement because of an estimate; the end of the call sets this again, too.
    IF NOT @@SESSION.sql_big_selects THEN
        SET SESSION sql_big_selects = 1, @mq_small_selects = 1;
    END IF;
    -- Lists are put together with GROUP_CONCAT, which MySQL would cut at 1,024 characters, and split by recursion.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    /*M! IF @@SESSION.max_recursive_iterations < 1000000 THEN SET SESSION max_recursive_iterations = 1000000; END IF; */
    /*!80000 IF @@SESSION.cte_max_recursion_depth < 1000000 THEN SET SESSION cte_max_recursion_depth = 1000000; END IF; */
END//

DELIMITER ;
