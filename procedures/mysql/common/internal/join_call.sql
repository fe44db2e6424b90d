-- join_call: join the open transaction, if there is one, at the start of a procedure that a trigger may call.
-- Arguments:   p_trigger (1: inside a trigger or function of MariaDB, where no savepoint is possible)
-- Returns:     p_own: 0: the procedure works in the caller's transaction, after a savepoint; 2: it works in the caller's,
--              where no savepoint is possible; 1: no transaction is open, so call begin_call
-- Transaction: begins none: a procedure that a trigger calls must not contain a statement that begins or commits, even in
--              a branch that never runs
--
-- With autocommit each statement of a procedure would commit alone. A savepoint shows whether a transaction is open:
-- outside of one it disappears at once, and releasing it raises error 1305 (measured on MySQL 9.7 and MariaDB 10.11,
-- 11.8). On MariaDB, a savepoint in a trigger makes the server lose the start of the statement that fired the trigger: if
-- that statement fails, its rows stay.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_join_call(IN p_trigger tinyint, OUT p_own tinyint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SET p_own = IF(p_trigger, 2, 0);
    IF NOT p_trigger THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR 1305 SET p_own = 1;
            -- MariaDB: the transaction has read one of the server's own tables; see require_use.
            DECLARE EXIT HANDLER FOR 1178 SET p_own = 2;
            SAVEPOINT mq_call;
            RELEASE SAVEPOINT mq_call;
        END;
    END IF;
    SET @mq_joined = p_own <> 1;
    IF p_own = 0 THEN
        SAVEPOINT mq_call;
    END IF;
    -- With --safe-updates, MariaDB refuses deletes by key that join a list, and MySQL refuses such updates of small
    -- tables. The end of the call restores the setting.
    IF @@SESSION.sql_safe_updates THEN
        SET SESSION sql_safe_updates = 0, @mq_safe_updates = 1;
    END IF;
    -- max_join_size could refuse a statement because of an estimate. The end of the call restores this setting too.
    IF NOT @@SESSION.sql_big_selects THEN
        SET SESSION sql_big_selects = 1, @mq_small_selects = 1;
    END IF;
    -- Lists are built with GROUP_CONCAT, which MySQL would cut at 1,024 characters, and split by a recursive query.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    /*M! IF @@SESSION.max_recursive_iterations < 1000000 THEN SET SESSION max_recursive_iterations = 1000000; END IF; */
    /*!80000 IF @@SESSION.cte_max_recursion_depth < 1000000 THEN SET SESSION cte_max_recursion_depth = 1000000; END IF; */
END
