-- count_free: how many of these active messages no open transaction holds; none can hold those until the caller's transaction ends.
-- Arguments:   p_items (what a claim holds: a JSON array of [id, ...])
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_count_free(IN p_items longtext CHARACTER SET utf8mb4, OUT p_count bigint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT COUNT(*) INTO p_count
    FROM (
        SELECT m.id
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        LIMIT 10000
        FOR UPDATE /*!80000 OF m */ SKIP LOCKED
    ) AS f;
END
