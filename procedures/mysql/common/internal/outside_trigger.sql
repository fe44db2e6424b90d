-- outside_trigger: do nothing, which the server refuses inside of a trigger or a function.
-- Arguments:   none
-- Returns:     nothing
-- Errors:      the server's 1422 inside of a trigger or a function
-- Transaction: changes nothing
-- Example:     CALL mq_outside_trigger();

DROP PROCEDURE IF EXISTS mq_outside_trigger;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_outside_trigger(
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- A statement that is never reached is enough.
    IF FALSE THEN
        COMMIT;
    END IF;
END//

DELIMITER ;
