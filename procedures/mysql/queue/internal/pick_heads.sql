-- pick_heads: in an ordered queue without a rate per group, take the first messages of free groups in the order of their
--             tickets, all at once; take nothing if a ticket needs more checks.
-- Arguments:   p_type, p_size (maximum number of messages), p_take (as in pick_grouped)
-- Returns:     p_items: '[id,number of this attempt],...', p_groups: their group keys as JSON strings separated by commas; NULL
--              when there are none. p_count: the number of messages
-- Transaction: joins the caller's, which holds the stripes of the groups until it ends; never waits
--
-- This does the work of read_tickets, take_heads and drop_tickets for the simple case. It skips blocked groups and groups
-- whose stripe another claim has locked. If a group comes twice, or a message is not the first of its group, it takes
-- nothing and leaves all tickets to those three.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_heads(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4, OUT p_groups longtext CHARACTER SET utf8mb4, OUT p_count int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_tickets longtext CHARACTER SET utf8mb4;
    DECLARE v_count, v_groups int;
    SET p_count = 0;
    -- The derived table is read without locks: only the stripes are locked.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.group_key), ']'), ']'),
        COUNT(*), COUNT(DISTINCT k.group_key)
    INTO v_tickets, v_count, v_groups
    FROM (
        SELECT t.id, t.priority, t.run_at, t.group_key
        FROM (
            SELECT r.id, r.priority, r.run_at, COALESCE(m.group_key, '') AS group_key, w.id IS NULL AS free
            FROM mq_ready AS r FORCE INDEX (PRIMARY)
            LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
            LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                ON w.type = m.type AND w.group_key = COALESCE(m.group_key, '') AND w.place = -1
            WHERE r.type = p_type AND r.lane = '' AND r.attempts >= 0
            ORDER BY r.priority, r.lane, r.run_at, r.id
            LIMIT p_size
        ) AS t
        STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', t.group_key)) MOD 16384
        WHERE t.free
        LIMIT p_size
        FOR UPDATE /*!80000 OF s */ SKIP LOCKED
    ) AS k;
    IF v_count > 0 AND v_groups = v_count THEN
        -- The first message is a column of a derived table. In a condition, MySQL would search it for each comparison.
        SELECT GROUP_CONCAT('[', h.id, ',', h.attempts + 1, ']' ORDER BY h.priority, h.run_at, h.id),
            GROUP_CONCAT(IF(p_take, JSON_QUOTE(h.group_key), NULL)), COUNT(*)
        INTO p_items, p_groups, p_count
        FROM (
            SELECT g.id, g.attempts, g.group_key, r.priority, r.run_at
            FROM (
                SELECT j.*, w.id AS busy, (
                        SELECT o.id FROM mq_grouped AS o FORCE INDEX (PRIMARY)
                        WHERE o.type = p_type AND o.group_key = j.group_key
                        ORDER BY o.id
                        LIMIT 1
                    ) AS head
                FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                    group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
                )) AS j
                LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                    ON w.type = p_type AND w.group_key = j.group_key AND w.place = -1
                LIMIT p_size
            ) AS f
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = f.group_key AND g.id = f.id
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = f.priority AND r.lane = '' AND r.run_at = f.run_at AND r.id = f.id
            WHERE f.busy IS NULL AND f.id = f.head
            LIMIT p_size
            FOR UPDATE /*!80000 OF g, r */ SKIP LOCKED
        ) AS h;
    END IF;
    IF p_count < v_count THEN
        SET p_items = NULL, p_groups = NULL, p_count = 0;
    ELSEIF p_count > 0 THEN
        DELETE g, r
        FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
            group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
        )) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
        STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = p_type AND r.priority = j.priority AND r.lane = '' AND r.run_at = j.run_at AND r.id = j.id;
        -- A take that continues with other tickets must not take from one group twice.
        IF NOT p_take OR p_count < p_size THEN
            INSERT INTO mq_group_lock (type, group_key, place, id)
            SELECT p_type, j.group_key, -1, j.id
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
            )) AS j;
        END IF;
    END IF;
END
