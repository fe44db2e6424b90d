-- delete_results: delete the results of messages, if they have any.
-- Arguments:   p_items (a JSON array of arrays that begin with an id)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_delete_results(IN p_items longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_some tinyint;
    -- Read first, without locks: few messages have a result.
    SELECT EXISTS (
        SELECT *
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_result AS k FORCE INDEX (PRIMARY) ON k.id = j.id
    ) INTO v_some;
    IF v_some THEN
        DELETE k
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_result AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END
