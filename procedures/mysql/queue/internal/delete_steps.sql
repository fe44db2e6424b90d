-- delete_steps: delete the steps of messages.
-- Arguments:   p_items (a JSON array of arrays that begin with an id)
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_delete_steps(IN p_items longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_some bigint;
    -- Read first, without locks: few messages have steps, and most queues have none.
    SELECT MIN(id) INTO v_some FROM mq_step;
    IF v_some IS NOT NULL THEN
        SELECT MIN(k.id) INTO v_some
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_step AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
    IF v_some IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_step AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END
