-- ids_of_group: the ids of a group's messages, from a bounded search.
-- Returns:     p_ids: a JSON array of the lowest p_size ids found: all due messages of a queue with groups, and other
--              messages among the first 10,000 of each state; NULL: none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_ids_of_group(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_group_key varchar(200) CHARACTER SET utf8mb4, IN p_size int,
    OUT p_ids longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE c_cap int DEFAULT 10000;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT(f.id ORDER BY f.id), ']') INTO p_ids
    FROM (
        SELECT y.id
        FROM (
            (SELECT g.id FROM mq_grouped AS g FORCE INDEX (PRIMARY)
            WHERE g.type = p_type AND g.group_key = p_group_key ORDER BY g.id LIMIT p_size)
            UNION
            SELECT m.id
            FROM (
                -- In a queue with groups these rows are tickets.
                (SELECT r.id FROM mq_ready AS r FORCE INDEX (PRIMARY)
                WHERE r.type = p_type ORDER BY r.priority, r.lane, r.run_at, r.id LIMIT c_cap)
                UNION ALL
                (SELECT d.id FROM mq_delayed AS d FORCE INDEX (PRIMARY)
                WHERE d.type = p_type ORDER BY d.run_at, d.id LIMIT c_cap)
                UNION ALL
                (SELECT i.id
                FROM mq_batch AS b FORCE INDEX (batch_lease)
                STRAIGHT_JOIN JSON_TABLE(b.items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS i
                WHERE b.type = p_type
                ORDER BY b.lease_until
                LIMIT c_cap)
                UNION ALL
                (SELECT e.id FROM mq_dead AS e FORCE INDEX (dead_age)
                WHERE e.type = p_type ORDER BY e.died_at DESC, e.id DESC LIMIT c_cap)
            ) AS x
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = x.id
            WHERE m.group_key = p_group_key
        ) AS y
        ORDER BY y.id LIMIT p_size
    ) AS f;
END
