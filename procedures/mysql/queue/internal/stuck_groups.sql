-- stuck_groups: groups that have due messages and are not blocked, but have no ticket. Claims do not find such groups, and
--               there should be none.
-- Arguments:   p_type (NULL: all types)
-- Returns:     p_groups: a JSON array of [type, group key], '' for messages without one; NULL for none; at most 1,000 of
--              the first 10,000 groups
--
-- In a group that is not blocked, one message has a ticket in mq_ready (see pick_grouped), at its own position or 1 to 97
-- microseconds before it, or after a mark (see issue_tickets).

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_stuck_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4, OUT p_groups longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_groups int DEFAULT 10000;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(s.type, s.group_key)), ']') INTO p_groups
    FROM (
        SELECT k.type, k.group_key
        FROM (
            (SELECT DISTINCT type, group_key FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = p_type LIMIT c_groups)
            UNION ALL
            (SELECT DISTINCT type, group_key FROM mq_grouped FORCE INDEX (PRIMARY) WHERE p_type IS NULL LIMIT c_groups)
        ) AS k
        STRAIGHT_JOIN mq_queue AS q FORCE INDEX (PRIMARY) ON q.type = (SELECT MAX(p.type) FROM mq_queue AS p WHERE p.type IN (k.type, ''))
        LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON o.type = k.type AND o.group_key = k.group_key
        LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY) ON w.type = k.type AND w.group_key = k.group_key AND w.place = 0
        WHERE w.id IS NULL AND q.grouped
            AND (SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY) WHERE l.type = k.type AND l.group_key = k.group_key)
                < IF(q.ordered, 1, COALESCE(NULLIF(COALESCE(o.max_active, q.group_max_active), 0), 2147483647))
            -- Whole primary keys and no EXISTS: MariaDB would read all tickets of the priority for each message.
            AND (
                SELECT r.id
                FROM mq_grouped AS g FORCE INDEX (PRIMARY)
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = g.id
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = g.type AND r.priority = m.priority AND r.lane = IF(q.fair, k.group_key, '') AND r.run_at = m.run_at
                    AND r.id = m.id
                WHERE g.type = k.type AND g.group_key = k.group_key
                LIMIT 1
            ) IS NULL
            AND (
                SELECT r.id
                FROM mq_grouped AS g FORCE INDEX (PRIMARY)
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = g.id
                STRAIGHT_JOIN mq_stripe AS n FORCE INDEX (PRIMARY) ON n.n BETWEEN 1 AND 97
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY) ON r.type = g.type AND r.priority = m.priority
                    AND r.lane = IF(q.fair, k.group_key, '') AND r.run_at = m.run_at - INTERVAL n.n MICROSECOND AND r.id = m.id
                WHERE g.type = k.type AND g.group_key = k.group_key
                LIMIT 1
            ) IS NULL
        LIMIT 1000
    ) AS s;
    IF p_groups IS NOT NULL THEN
        -- Few groups are left. Their tickets may be at other positions: read those of their types.
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(s.type, s.group_key)), ']') INTO p_groups
        FROM JSON_TABLE(p_groups, '$[*]' COLUMNS (
            type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]',
            group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]'
        )) AS s
        LEFT JOIN (
            SELECT DISTINCT g.type, g.group_key
            FROM (
                SELECT DISTINCT t.type
                FROM JSON_TABLE(p_groups, '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4
                    COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]')) AS t
            ) AS t
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY) ON r.type = t.type
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
        ) AS k ON k.type = s.type AND k.group_key = s.group_key
        WHERE k.type IS NULL;
    END IF;
END
