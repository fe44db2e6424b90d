-- pick_heads: in an ordered queue without a rate by group, take the first messages of the groups whose tickets come first, all in
--             one, as far as each of them is free.
-- Arguments:   p_type, p_size (at most so many, and so many tickets are read), p_take (as pick_grouped has it)
-- Returns:     p_items: '[id,number of this attempt],...', p_groups: their group keys as JSON strings with commas between; NULL for
--              none. p_count: how many
-- Errors:      none
-- Transaction: joins the caller's, which holds the stripes of the groups until it ends; never waits
-- Example:     CALL mq_pick_heads('invoice', 100, 0, v_items, v_groups, v_count);
--
-- What pick_grouped does for the tickets that it reads, for the simple ones: the ticket is that of the first message of a free
-- group. A ticket that leads nowhere, or whose message is in no group yet, leaves all of them to pick_grouped.

DROP PROCEDURE IF EXISTS mq_pick_heads;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick_heads(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4,
    OUT p_groups longtext CHARACTER SET utf8mb4,
    OUT p_count int
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_tickets, v_heads longtext CHARACTER SET utf8mb4;
    DECLARE v_lone int;
    SET p_count = 0;
    -- Without a lock but those of the stripes. Of the tickets that one message has, the first.
    SELECT CONCAT('[', GROUP_CONCAT('[', t.id, ',', t.priority, ',"', t.run_at, '",', JSON_QUOTE(t.group_key), ']'
        ORDER BY t.priority, t.run_at, t.id), ']'), SUM(t.lone)
    INTO v_tickets, v_lone
    FROM (
        SELECT t.id, t.priority, t.run_at, t.group_key, t.lone
        FROM (
            SELECT r.id, r.priority, MIN(r.run_at) AS run_at, COALESCE(m.group_key, '') AS group_key, g.id IS NULL AS lone,
                w.id IS NULL AS free
            FROM (
                SELECT id, priority, run_at FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND attempts >= 0
                ORDER BY priority, run_at, id LIMIT p_size
            ) AS r
            LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
            LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
            LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                ON w.type = m.type AND w.group_key = COALESCE(m.group_key, '') AND w.place = -1
            GROUP BY r.id, r.priority
        ) AS t
        STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', t.group_key)) MOD 16384
        WHERE t.free
        LIMIT p_size
        FOR UPDATE /*!80000 OF s */ SKIP LOCKED
    ) AS t;
    IF v_lone = 0 THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', h.id, ',', h.priority, ',"', h.run_at, '",', JSON_QUOTE(h.group_key), ']'), ']'),
            GROUP_CONCAT('[', h.id, ',', h.attempts + 1, ']' ORDER BY h.n), GROUP_CONCAT(JSON_QUOTE(h.group_key)), COUNT(*)
        INTO v_heads, p_items, p_groups, p_count
        FROM (
            SELECT g.id, g.attempts, g.group_key, r.priority, r.run_at, j.n
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
            )) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id
            WHERE (SELECT COUNT(*) FROM mq_group_lock AS l WHERE l.type = p_type AND l.group_key = j.group_key) = 0
                AND j.id = (
                    SELECT f.id FROM mq_grouped AS f FORCE INDEX (PRIMARY)
                    WHERE f.type = p_type AND f.group_key = j.group_key
                    ORDER BY f.id
                    LIMIT 1
                )
            LIMIT p_size
            FOR UPDATE /*!80000 OF g, r */ SKIP LOCKED
        ) AS h;
    END IF;
    IF p_count > 0 THEN
        DELETE g, r
        FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
            group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
        )) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
        STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id;
        -- A take that goes on needs them for itself, not to take from one group twice.
        IF NOT p_take OR p_count < p_size THEN
            INSERT INTO mq_group_lock (type, group_key, place, id)
            SELECT p_type, j.group_key, -1, j.id
            FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
            )) AS j;
        END IF;
    END IF;
END//

DELIMITER ;
