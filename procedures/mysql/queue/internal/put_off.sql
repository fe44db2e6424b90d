-- put_off: delay the first message of each group that has no token, until the group's next token.
-- Arguments:   p_groups (a JSON array of group keys, '' for none, each once)
-- Returns:     p_done: the keys of the groups with a delayed message, JSON strings separated by commas; NULL: none, because
--              others have locked the groups or the messages, or have changed the policy
-- Transaction: joins the caller's, which commits soon; locks the stripes of the groups; never waits. set_queue waits for it
--
-- All groups at once: there may be thousands. A message waits like a failed message of an ordered queue: promote brings it
-- back and frees its place.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_put_off(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_groups longtext CHARACTER SET utf8mb4,
    OUT p_done longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_ordered tinyint;
    DECLARE v_places, v_rate, v_rate_seconds int;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    -- A policy change that commits after this finds the delayed messages and makes them due.
    SELECT MAX(q.ordered), MAX(IF(q.ordered, 1, q.group_max_active)), MAX(q.group_rate), MAX(q.group_rate_seconds)
    INTO v_ordered, v_places, v_rate, v_rate_seconds
    FROM (
        SELECT ordered, group_max_active, group_rate, group_rate_seconds FROM mq_queue WHERE type = p_type
        /*!80000 FOR SHARE SKIP LOCKED */ /*M! LOCK IN SHARE MODE SKIP LOCKED */
    ) AS q;
    IF v_ordered IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(s.group_key)), ']') INTO v_items
        FROM (
            SELECT j.group_key
            FROM JSON_TABLE(p_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', j.group_key)) MOD 16384
            FOR UPDATE /*!80000 OF s */ SKIP LOCKED
        ) AS s;
    END IF;
    -- Under the locks: the groups that still have a free place and no token.
    SELECT CONCAT('[', GROUP_CONCAT('[', f.id, ',', JSON_QUOTE(f.group_key), ',"', f.next_at, '"]'), ']') INTO v_items
    FROM (
        SELECT k.*, LEAST(k.full_at, v_now + INTERVAL k.rate_seconds SECOND) - INTERVAL k.rate_seconds SECOND
                + INTERVAL k.token MICROSECOND AS next_at, (
                SELECT g.id FROM mq_grouped AS g FORCE INDEX (PRIMARY)
                WHERE g.type = p_type AND g.group_key = k.group_key
                ORDER BY g.id
                LIMIT 1
            ) AS id, (
                SELECT COUNT(*) * (k.places > 0) + 1000000 * COALESCE(SUM(l.place = 0), 0)
                FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                WHERE l.type = p_type AND l.group_key = k.group_key
            ) AS taken
        FROM (
            -- token: microseconds from one token to the next.
            SELECT j.group_key, b.full_at, COALESCE(o.rate_seconds, v_rate_seconds) AS rate_seconds,
                IF(v_ordered, 1, COALESCE(o.max_active, v_places)) AS places,
                (COALESCE(o.rate_seconds, v_rate_seconds) * 1000000 + COALESCE(o.rate, v_rate) - 1)
                    DIV NULLIF(COALESCE(o.rate, v_rate), 0) AS token
            FROM JSON_TABLE(COALESCE(v_items, '[]'), '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            STRAIGHT_JOIN mq_bucket AS b FORCE INDEX (PRIMARY) ON b.type = p_type AND b.group_key = j.group_key
            LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON o.type = p_type AND o.group_key = j.group_key
        ) AS k
        WHERE k.full_at > v_now + INTERVAL k.rate_seconds SECOND - INTERVAL k.token MICROSECOND
    ) AS f
    WHERE f.taken < GREATEST(f.places, 1);
    -- Skip a group if another transaction is cancelling or purging its first message.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', JSON_QUOTE(k.group_key), ',"', k.next_at, '",', k.attempts, ']'), ']'),
        GROUP_CONCAT(JSON_QUOTE(k.group_key))
    INTO v_items, p_done
    FROM (
        SELECT g.id, g.group_key, g.attempts, j.next_at
        FROM JSON_TABLE(COALESCE(v_items, '[]'), '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]', next_at datetime(6) PATH '$[2]'
        )) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
        FOR UPDATE /*!80000 OF g */ SKIP LOCKED
    ) AS k;
    IF p_done IS NOT NULL THEN
        DELETE g
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
        )) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id;
        UPDATE JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]', next_at datetime(6) PATH '$[2]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        SET m.sent_run_at = COALESCE(m.sent_run_at, m.run_at), m.run_at = j.next_at;
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        SELECT p_type, j.next_at, j.id, m.priority, j.attempts
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (
            id bigint PATH '$[0]', next_at datetime(6) PATH '$[2]', attempts smallint PATH '$[3]'
        )) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;
        INSERT INTO mq_group_lock (type, group_key, place, id)
        SELECT p_type, j.group_key, IF(v_ordered, -1, 0), j.id
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (
            id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
        )) AS j;
    END IF;
END
