-- lock_bindings: make calls that change bindings wait for each other; row locks alone could deadlock.
-- Transaction: joins the caller's; locks the row of the default policy, which no other call locks

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lock_bindings()
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count int;
    SELECT COUNT(*) INTO v_count FROM mq_queue WHERE type = '' FOR UPDATE;
END
