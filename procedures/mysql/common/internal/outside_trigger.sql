-- outside_trigger: do nothing; the server refuses this procedure inside a trigger or a function.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_outside_trigger()
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- A statement that never runs is enough for the server to refuse the call.
    IF FALSE THEN
        COMMIT;
    END IF;
END
