-- begin_call: the start of a procedure that changes something: join the caller's transaction, or begin one.
-- Arguments:   p_claims (1: the procedure claims or finishes, which needs READ COMMITTED)
-- Returns:     p_own: 1 when the procedure has a transaction of its own, 0 when it works under a savepoint of the caller's, 2
--              when it works in the caller's and there can be no savepoint
-- Errors:      50001 wrong_isolation, before anything is done
-- Transaction: READ COMMITTED when it is our own, whatever the session has
-- Example:     CALL mq_begin_call(1, v_own); ... CALL mq_end_call(v_own);
--
-- With autocommit each statement of a procedure would commit alone. Whether a transaction is open shows in a savepoint:
-- outside of one it is forgotten at once, and releasing it is error 1305 (measured on MySQL 9.7 and MariaDB 10.11, 11.8).

DROP PROCEDURE IF EXISTS mq_begin_call;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_begin_call(
    IN p_claims tinyint,
    OUT p_own tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SET p_own = 0;
    BEGIN
        DECLARE CONTINUE HANDLER FOR 1305 SET p_own = 1;
        -- MariaDB, after the transaction has read one of the server's own tables: see require_use.
        DECLARE EXIT HANDLER FOR 1178 SET p_own = 2;
        SAVEPOINT mq_call;
        RELEASE SAVEPOINT mq_call;
    END;
    SET @mq_joined = p_own <> 1;
    IF p_own = 1 THEN
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
    ELSE
        IF p_claims THEN
            CALL mq_require_read_committed();
        END IF;
        IF p_own = 0 THEN
            SAVEPOINT mq_call;
        END IF;
    END IF;
    -- With --safe-updates MariaDB refuses deletes by key that are joined to a list, and MySQL such updates of small tables;
    -- end_call and undo_call set it again.
    SET @mq_safe_updates = @@SESSION.sql_safe_updates;
    IF @mq_safe_updates THEN
        SET SESSION sql_safe_updates = 0;
    END IF;
    -- Otherwise max_join_size refuses a statement because of an estimate; end_call and undo_call set this again, too.
    SET @mq_small_selects = NOT @@SESSION.sql_big_selects;
    IF @mq_small_selects THEN
        SET SESSION sql_big_selects = 1;
    END IF;
    -- Lists are put together with GROUP_CONCAT, which MySQL would cut at 1,024 characters, and split by recursion.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    /*M! IF @@SESSION.max_recursive_iterations < 100000 THEN SET SESSION max_recursive_iterations = 100000; END IF; */
    /*!80000 IF @@SESSION.cte_max_recursion_depth < 100000 THEN SET SESSION cte_max_recursion_depth = 100000; END IF; */
END//

DELIMITER ;
