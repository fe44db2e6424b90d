-- drop_locks: free the places that messages take in their groups.
-- Arguments:   p_type, p_items (a JSON array of arrays that begin with an id; the messages still exist)
-- Returns:     p_groups: a JSON array of the group keys, each once; NULL when no message had a place
-- Transaction: joins the caller's; never waits: it deletes only rows that no other session locks

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_locks(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_groups longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_places longtext CHARACTER SET utf8mb4;
    -- Read without locks and by whole primary keys. In an ordered queue a group has one place, -1.
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(o.group_key)), ']') INTO p_groups
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    STRAIGHT_JOIN mq_group_lock AS o FORCE INDEX (PRIMARY)
        ON o.type = p_type AND o.group_key = COALESCE(m.group_key, '') AND o.place = -1
    WHERE o.id = m.id;
    IF JSON_LENGTH(p_groups) = JSON_LENGTH(p_items) THEN
        DELETE l
        FROM JSON_TABLE(p_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$')) AS j
        STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
            ON l.type = p_type AND l.group_key = j.group_key AND l.place = -1;
    ELSE
        SELECT CONCAT('[', GROUP_CONCAT('[', l.place, ',', JSON_QUOTE(l.group_key), ']'), ']') INTO v_places
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        STRAIGHT_JOIN JSON_TABLE('[0,1,2]', '$[*]' COLUMNS (which int PATH '$')) AS p
        STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY) ON l.type = p_type AND l.group_key = COALESCE(m.group_key, '')
            AND l.place = CASE p.which WHEN 0 THEN -1 WHEN 1 THEN 0 ELSE m.id END
        WHERE l.id = m.id;
        SET p_groups = NULL;
        IF v_places IS NOT NULL THEN
            DELETE l
            FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
                place bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[1]'
            )) AS j
            STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
                ON l.type = p_type AND l.group_key = j.group_key AND l.place = j.place;
            SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']') INTO p_groups
            FROM (
                SELECT DISTINCT j.group_key
                FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
                    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]'
                )) AS j
            ) AS k;
        END IF;
    END IF;
END
