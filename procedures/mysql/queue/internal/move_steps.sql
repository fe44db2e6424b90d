-- move_steps: delete the steps of messages that have ended; write them into the archive's rows of these messages, if there are any.
-- Arguments:   p_items (a JSON array of arrays that begin with an id), p_month (the archive's partition; NULL: not archived)
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_move_steps(IN p_items longtext CHARACTER SET utf8mb4, IN p_month tinyint)
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
        IF p_month IS NOT NULL THEN
            IF @@SESSION.group_concat_max_len < 1073741824 THEN
                SET SESSION group_concat_max_len = 1073741824;
            END IF;
            UPDATE JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_archive AS a FORCE INDEX (PRIMARY) ON a.id = j.id AND a.month = p_month
            SET a.steps = (
                SELECT CONCAT('[', GROUP_CONCAT('{"step":', JSON_QUOTE(s.step), ',"value":', COALESCE(JSON_QUOTE(s.step_value), 'null'),
                    ',"saved_at":"', DATE_FORMAT(s.saved_at, '%Y-%m-%dT%H:%i:%s.%fZ'), '"}' ORDER BY s.n), ']')
                FROM mq_step AS s FORCE INDEX (PRIMARY) WHERE s.id = a.id
            );
        END IF;
        DELETE k
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_step AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END
