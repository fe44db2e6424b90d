-- pick_ordered: take the head messages of up to p_size groups of an ordered queue, one a group.
-- Arguments:   p_type, p_size, p_take (1: the messages are finished by the caller's own commit)
-- Returns:     p_items: a JSON array of [id, number of this attempt]; NULL when no group can go on
-- Errors:      none
-- Transaction: joins the caller's; never waits for another claim
-- Example:     CALL mq_pick_ordered('invoice', 10, 0, @items);
--
-- A row of mq_ready is a ticket here: 'the group of this message has something to do', and every message brings one, so
-- that senders lock nothing. A ticket is only a hint, and is read without a lock. Of groups that seem free a claim locks the
-- stripe (mq_stripe), passing over what others have locked; now nobody else can begin with such a group, and a second look
-- tells whether it is free and what its first message is, whichever ticket led there.
--
-- Nobody waits, not even who finishes: MariaDB puts a lock that SKIP LOCKED passes over into the queue for a moment, and
-- takes it for a deadlock when its holder really waits for the claim. So the rule that no group gets stuck is: of a group
-- that is free, one message in mq_grouped has a ticket of its own. Who ends a group's work issues one, after its last look
-- at the group. Of a group at work a claim drops all tickets but the first, while it holds that one and its message, so that
-- no cancel can take it away. Tickets of messages that are not in mq_grouped are dropped: they get new ones with their return.

DROP PROCEDURE IF EXISTS mq_pick_ordered;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick_ordered(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- A take keeps its stripes until its handler is done, and with them other groups that share them.
    DECLARE c_groups int DEFAULT 250;
    DECLARE c_tickets int DEFAULT 10000;
    -- Dropping costs writes and locks: a few tickets of groups at work are walked again by the next claim.
    DECLARE c_few int DEFAULT 40;
    DECLARE v_left int DEFAULT LEAST(p_size, c_groups);
    DECLARE v_chunk int DEFAULT 50 + 2 * v_left;
    DECLARE v_walked, v_read, v_won, v_last, v_lone int DEFAULT 0;
    DECLARE v_priority int DEFAULT -32769;
    DECLARE v_run_at datetime(6) DEFAULT '1000-01-01';
    DECLARE v_id bigint DEFAULT 0;
    DECLARE v_tickets, v_groups, v_heads, v_picked, v_taken, v_used, v_spent, v_more longtext CHARACTER SET utf8mb4;
    SET p_items = NULL;

    walk: WHILE v_left > 0 AND v_walked < c_tickets DO
        -- What a ticket stands for: 0 nothing, 1 a group at work, 2 a free group, 3 a message that is in no group yet.
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', k.what, ',', k.nth, ',',
            JSON_QUOTE(k.group_key), ']' ORDER BY k.priority, k.run_at, k.id), ']'), COUNT(*),
            GROUP_CONCAT(IF(k.what = 0, CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '"]'), NULL)),
            IF(SUM(k.what = 1 AND k.nth > 1) > c_few, CONCAT('[', GROUP_CONCAT(IF(k.what = 1 AND k.nth > 1, CONCAT('[', k.id,
                ',', k.priority, ',"', k.run_at, '",', k.first_id, ',', k.first_priority, ',"', k.first_run_at, '",',
                JSON_QUOTE(k.group_key), ']'), NULL)), ']'), NULL),
            COALESCE(SUM(k.what = 3), 0)
        INTO v_tickets, v_read, v_spent, v_more, v_lone
        FROM (
            SELECT t.*, ROW_NUMBER() OVER same_group AS nth, FIRST_VALUE(t.id) OVER same_group AS first_id,
                FIRST_VALUE(t.priority) OVER same_group AS first_priority,
                FIRST_VALUE(t.run_at) OVER same_group AS first_run_at
            FROM (
                SELECT r.id, r.priority, r.run_at, COALESCE(m.group_key, '') AS group_key,
                    CASE
                        WHEN m.id IS NULL THEN 0
                        WHEN g.id IS NULL THEN IF(l.id <=> m.id OR e.id IS NOT NULL OR d.id IS NOT NULL, 0, 3)
                        WHEN l.id IS NOT NULL THEN 1
                        ELSE 2
                    END AS what
                FROM mq_ready AS r FORCE INDEX (PRIMARY)
                LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
                LEFT JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
                    ON l.type = m.type AND l.group_key = COALESCE(m.group_key, '')
                LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                    ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
                LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = m.id AND g.id IS NULL
                LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY)
                    ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id AND g.id IS NULL
                WHERE r.type = p_type AND r.attempts >= 0
                    AND (r.priority > v_priority OR r.priority = v_priority
                        AND (r.run_at > v_run_at OR r.run_at = v_run_at AND r.id > v_id))
                    -- A take leaves the tickets of groups at work to the claims, and must not stumble over them.
                    AND NOT (p_take AND l.id IS NOT NULL)
                ORDER BY r.priority, r.run_at, r.id
                LIMIT v_chunk
            ) AS t
            WINDOW same_group AS (PARTITION BY t.group_key ORDER BY t.what = 0, t.priority, t.run_at, t.id)
        ) AS k;
        IF v_read = 0 THEN
            LEAVE walk;
        END IF;

        SELECT CONCAT('[', GROUP_CONCAT('[', s.id, ',', s.priority, ',"', s.run_at, '",', s.n, ',', JSON_QUOTE(s.group_key), ']'
            ORDER BY s.n), ']'), COUNT(*), MAX(s.n)
        INTO v_groups, v_won, v_last
        FROM (
            SELECT j.id, j.priority, j.run_at, j.n, j.group_key
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                what int PATH '$[3]', nth int PATH '$[4]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]'
            )) AS j
            STRAIGHT_JOIN mq_stripe AS s FORCE INDEX (PRIMARY) ON s.n = CRC32(CONCAT(p_type, '\n', j.group_key)) MOD 16384
            WHERE j.what >= 2 AND j.nth = 1
            LIMIT v_left
            FOR UPDATE /*!80000 OF s */ SKIP LOCKED
        ) AS s;
        -- What is behind the last stripe that was wanted has not been tried.
        SET v_last = IF(v_won = v_left, v_last, v_read);

        SET v_heads = NULL;
        SET v_used = NULL;
        IF v_won > 0 THEN
            IF v_lone > 0 THEN
                -- Sent by a transaction that began before the queue was made ordered.
                INSERT IGNORE INTO mq_grouped (type, group_key, id, attempts)
                SELECT m.type, COALESCE(m.group_key, ''), m.id, 0
                FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
                STRAIGHT_JOIN JSON_TABLE(v_tickets, '$[*]' COLUMNS (id bigint PATH '$[0]', what int PATH '$[3]')) AS t
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = t.id AND COALESCE(m.group_key, '') = j.group_key
                WHERE t.what = 3
                    AND NOT EXISTS (SELECT * FROM mq_group_lock AS l WHERE l.type = p_type AND l.group_key = j.group_key)
                    AND NOT EXISTS (SELECT * FROM mq_dead AS e WHERE e.id = m.id)
                    AND NOT EXISTS (SELECT * FROM mq_delayed AS d FORCE INDEX (PRIMARY)
                        WHERE d.type = p_type AND d.run_at = m.run_at AND d.id = m.id);
            END IF;
            -- The group of a head that is being cancelled or purged is passed over.
            SELECT CONCAT('[', GROUP_CONCAT('[', h.id, ',', JSON_QUOTE(h.group_key), ']'), ']'),
                GROUP_CONCAT('[', h.id, ',', h.attempts + 1, ']' ORDER BY h.n), GROUP_CONCAT(JSON_QUOTE(h.group_key)),
                GROUP_CONCAT('[', h.ticket, ',', h.priority, ',"', h.run_at, '"]'), COUNT(*)
            INTO v_heads, v_picked, v_groups, v_used, v_won
            FROM (
                SELECT g.id, g.attempts, g.group_key, j.priority, j.run_at, j.id AS ticket, j.n
                FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', n int PATH '$[3]',
                    group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[4]'
                )) AS j
                STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                    ON g.type = p_type AND g.group_key = j.group_key AND g.id = (
                        SELECT f.id FROM mq_grouped AS f FORCE INDEX (PRIMARY)
                        WHERE f.type = p_type AND f.group_key = j.group_key
                        ORDER BY f.id
                        LIMIT 1
                    )
                WHERE (SELECT COUNT(*) FROM mq_group_lock AS l WHERE l.type = p_type AND l.group_key = j.group_key) = 0
                LIMIT c_groups
                FOR UPDATE /*!80000 OF g */ SKIP LOCKED
            ) AS h;
        END IF;
        IF v_heads IS NOT NULL THEN
            DELETE g
            FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
            )) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id;
            -- A take needs it for itself, not to take from one group twice.
            INSERT INTO mq_group_lock (type, group_key, id)
            SELECT p_type, j.group_key, j.id
            FROM JSON_TABLE(v_heads, '$[*]' COLUMNS (
                id bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[1]'
            )) AS j;
            SET p_items = CONCAT_WS(',', p_items, v_picked);
            SET v_taken = CONCAT_WS(',', v_taken, v_groups);
            SET v_left = v_left - v_won;
        END IF;

        IF NOT p_take THEN
            -- All that were seen of the groups claimed just now, or a long group would be walked each time. A take drops only
            -- those that led it there: the others must not be hidden until its handler is done.
            SET v_used = NULL;
            IF v_heads IS NOT NULL THEN
                SELECT GROUP_CONCAT('[', j.id, ',', j.priority, ',"', j.run_at, '"]')
                INTO v_used
                FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                    what int PATH '$[3]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]'
                )) AS j
                STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY) ON l.type = p_type AND l.group_key = j.group_key
                WHERE j.what = 2;
            END IF;
            IF v_more IS NOT NULL THEN
                SELECT GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '"]')
                INTO v_more
                FROM (
                    SELECT j.id, j.priority, j.run_at
                    FROM JSON_TABLE(v_more, '$[*]' COLUMNS (
                        id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                        first_id bigint PATH '$[3]', first_priority smallint PATH '$[4]',
                        first_run_at datetime(6) PATH '$[5]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[6]'
                    )) AS j
                    STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                        ON r.type = p_type AND r.priority = j.first_priority AND r.run_at = j.first_run_at AND r.id = j.first_id
                    STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                        ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.first_id
                    LIMIT c_tickets
                    FOR UPDATE /*!80000 OF r, g */ SKIP LOCKED
                ) AS k;
            END IF;
        END IF;
        SET v_spent = CONCAT('[', NULLIF(CONCAT_WS(',', v_spent, v_used, v_more), ''), ']');
        IF v_spent IS NOT NULL THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '"]'), ']')
            INTO v_spent
            FROM (
                SELECT r.id, r.priority, r.run_at
                FROM JSON_TABLE(v_spent, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]'
                )) AS j
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id
                LIMIT c_tickets
                FOR UPDATE /*!80000 OF r */ SKIP LOCKED
            ) AS k;
        END IF;
        IF v_spent IS NOT NULL THEN
            DELETE r
            FROM JSON_TABLE(v_spent, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]'
            )) AS j
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id;
        END IF;

        IF v_last = v_read AND v_read < v_chunk THEN
            LEAVE walk;
        END IF;
        SET v_priority = JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][1]'));
        SET v_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][2]')));
        SET v_id = JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][0]'));
        SET v_walked = v_walked + v_last;
        SET v_chunk = 1000;
    END WHILE;

    IF p_items IS NOT NULL THEN
        SET p_items = CONCAT('[', p_items, ']');
        IF p_take THEN
            SET v_taken = CONCAT('[', v_taken, ']');
            DELETE l
            FROM JSON_TABLE(v_taken, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY) ON l.type = p_type AND l.group_key = j.group_key;
            CALL mq_issue_tickets(p_type, v_taken);
        END IF;
    END IF;
END//

DELIMITER ;
