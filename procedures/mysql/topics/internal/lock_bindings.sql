-- lock_bindings: let calls that change bindings wait for each other; row by row they could end in a deadlock.
-- Arguments:   none
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; the row of the defaults, which nothing else locks
-- Example:     CALL mq_lock_bindings();

DROP PROCEDURE IF EXISTS mq_lock_bindings;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_lock_bindings(
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_count int;
    SELECT COUNT(*) INTO v_count FROM mq_queue WHERE type = '' FOR UPDATE;
END//

DELIMITER ;
