-- next_due: when the next messages of schedules of several types are due.
-- Arguments:   p_types (a JSON array)
-- Returns:     p_next: a JSON array of [type, time]; a type without a schedule is not in it

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_due(
    IN p_types longtext CHARACTER SET utf8mb4, OUT p_next longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- As in join_call: a wait begins no transaction.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('[', COALESCE(GROUP_CONCAT('[', JSON_QUOTE(t.type), ',"', t.next_at, '"]'), ''), ']') INTO p_next
    FROM (
        SELECT s.type, MIN(s.next_at) AS next_at
        FROM JSON_TABLE(p_types, '$[*]' COLUMNS (
            type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
        )) AS j
        STRAIGHT_JOIN mq_schedule AS s FORCE INDEX (schedule_due) ON s.type = j.type
        WHERE s.next_at IS NOT NULL
        GROUP BY s.type
    ) AS t;
END
