-- take_heads: in an ordered queue, take the first message of each group of the given tickets that is not blocked.
-- Arguments:   p_type, p_size (maximum number of messages), p_tickets and p_lone (from read_tickets)
-- Returns:     p_items: '[id,number of this attempt],...'; p_groups: their group keys, JSON strings separated by commas;
--              p_used: '[id,priority,run_at],...' of the used tickets; each NULL for none. p_count: number of messages;
--              p_last: number of tickets that were tried
-- Transaction: joins the caller's, which keeps the stripes of the groups locked until it ends; never waits

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_heads(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_tickets longtext CHARACTER SET utf8mb4,
    IN p_lone int, OUT p_items longtext CHARACTER SET utf8mb4, OUT p_groups longtext CHARACTER SET utf8mb4,
    OUT p_used longtext CHARACTER SET utf8mb4, OUT p_count int, OUT p_last int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_locked, v_heads longtext CHARACTER SET utf8mb4;
    SELECT CONCAT('[', GROUP_CONCAT('[', s.id, ',', s.priority, ',"', s.run_at, '",', s.n, ',', JSON_QUOTE(s.group_key), ',', JSON_QUOTE(s.lane), ']'
        ORDER BY s.n), ']'), COUNT(*), MAX(s.n)
    INTO v_locked, p_count, p_last
    FROM (
        SELECT j.id, j.priority, j.run_at, j.n, j.group_key, j.lane
        FROM JSON_TABLE(p_tickets, '$[*]' COLUMNS (
            n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
            what int PATH '$[3]', nth int PATH '$[4]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]',
            lane varchar(200) CHARACTER SET utf8mb4 PATH '$[6]'
        )) AS j
        STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', j.group_key)) MOD 16384
        WHERE j.what >= 2 AND j.nth = 1
        LIMIT p_size
        FOR UPDATE /*!80000 OF s */ SKIP LOCKED
    ) AS s;
    -- The tickets after the last wanted stripe were not tried.
    SET p_last = IF(p_count = p_size, p_last, JSON_LENGTH(p_tickets));
    IF p_count > 0 THEN
        IF p_lone > 0 THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', t.id, ']'), ']') INTO v_heads
            FROM JSON_TABLE(v_locked, '$[*]' COLUMNS (
                group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[4]'
            )) AS j
            STRAIGHT_JOIN JSON_TABLE(p_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', what int PATH '$[3]',
                group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]'
            )) AS t ON t.group_key = j.group_key
            WHERE t.what = 3;
            CALL imq_add_lone(p_type, v_heads);
        END IF;
        -- Skip the group if another transaction is cancelling or purging its first message.
        SELECT CONCAT('[', GROUP_CONCAT('[', h.id, ',', JSON_QUOTE(h.group_key), ']'), ']'),
            GROUP_CONCAT('[', h.id, ',', h.attempts + 1, ']' ORDER BY h.n), GROUP_CONCAT(JSON_QUOTE(h.group_key)),
            GROUP_CONCAT('[', h.ticket, ',', h.priority, ',"', h.run_at, '",', JSON_QUOTE(h.lane), ']'), COUNT(*)
        INTO v_heads, p_items, p_groups, p_used, p_count
        FROM (
            SELECT g.id, g.attempts, g.group_key, j.priority, j.run_at, j.lane, j.id AS ticket, j.n
            FROM JSON_TABLE(v_locked, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', n int PATH '$[3]',
                group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[4]', lane varchar(200) CHARACTER SET utf8mb4 PATH '$[5]'
            )) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = (
                    SELECT f.id FROM mq_grouped AS f FORCE INDEX (PRIMARY)
                    WHERE f.type = p_type AND f.group_key = j.group_key
                    ORDER BY f.id
                    LIMIT 1
                )
            WHERE (SELECT COUNT(*) FROM mq_group_lock AS l WHERE l.type = p_type AND l.group_key = j.group_key) = 0
            LIMIT p_size
            FOR UPDATE /*!80000 OF g */ SKIP LOCKED
        ) AS h;
    END IF;
    IF v_heads IS NOT NULL THEN
        DELETE g
        FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
        )) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id;
        -- A take needs these rows too: they keep it from taking from one group twice.
        INSERT INTO mq_group_lock (type, group_key, place, id)
        SELECT p_type, j.group_key, -1, j.id
        FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
        )) AS j;
    END IF;
END
