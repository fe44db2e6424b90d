-- add_lone: add messages to their groups that a transaction sent before it could see that the queue is grouped.
-- Arguments:   p_type, p_ids (a JSON array of [id])
-- Transaction: joins the caller's, which has locked the stripes of the groups; never waits

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_lone(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_ids longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    INSERT IGNORE INTO mq_grouped (type, group_key, id, attempts)
    SELECT m.type, COALESCE(m.group_key, ''), m.id, 0
    FROM JSON_TABLE(p_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    WHERE NOT EXISTS (SELECT * FROM mq_group_lock AS l
            WHERE l.type = p_type AND l.group_key = COALESCE(m.group_key, '') AND l.id = m.id)
        AND NOT EXISTS (SELECT * FROM mq_dead AS e WHERE e.id = m.id)
        AND NOT EXISTS (SELECT * FROM mq_delayed AS d FORCE INDEX (PRIMARY)
            WHERE d.type = p_type AND d.run_at = m.run_at AND d.id = m.id);
END
