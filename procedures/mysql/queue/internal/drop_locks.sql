-- drop_locks: messages of a grouped queue give their places in their groups back.
-- Arguments:   p_type, p_items (a JSON array of arrays that begin with an id; the messages are still there)
-- Returns:     p_groups: a JSON array of the groups' keys, each once; NULL when none had a place
-- Errors:      none
-- Transaction: joins the caller's; never waits: only rows of our own are deleted, which no other session locks
-- Example:     CALL mq_drop_locks('invoice', '[[17]]', v_groups);

DROP PROCEDURE IF EXISTS mq_drop_locks;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_locks(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_groups longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_places longtext CHARACTER SET utf8mb4;
    DECLARE v_single tinyint;
    -- Without a lock, and by whole primary keys. Of a message at the only place the others are not searched: NULL is found nowhere.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.place, ',', JSON_QUOTE(k.group_key), ']'), ']'),
        CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']'), MAX(k.place) = -1
    INTO v_places, p_groups, v_single
    FROM (
        SELECT COALESCE(m.group_key, '') AS group_key,
            CASE m.id WHEN o.id THEN -1 WHEN w.id THEN 0 WHEN l.id THEN l.place END AS place
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        LEFT JOIN mq_group_lock AS o FORCE INDEX (PRIMARY)
            ON o.type = p_type AND o.group_key = COALESCE(m.group_key, '') AND o.place = -1
        LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
            ON w.type = p_type AND w.group_key = COALESCE(m.group_key, '') AND w.place = IF(o.id <=> m.id, NULL, 0)
        LEFT JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
            ON l.type = p_type AND l.group_key = COALESCE(m.group_key, '') AND l.place = IF(o.id <=> m.id, NULL, m.id)
    ) AS k
    WHERE k.place IS NOT NULL;
    IF v_places IS NOT NULL THEN
        DELETE l
        FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
            place bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
        )) AS j
        STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
            ON l.type = p_type AND l.group_key = j.group_key AND l.place = j.place;
    END IF;
    IF v_places IS NOT NULL AND NOT v_single THEN
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']')
        INTO p_groups
        FROM (
            SELECT DISTINCT j.group_key
            FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
                group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]'
            )) AS j
        ) AS k;
    END IF;
END//

DELIMITER ;
