-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--               many as the limits per group allow. In a fair queue the groups of a priority take turns.
-- Arguments:   p_take (1: called by take_batch; its own commit finishes the messages, perhaps much later), p_full (1: read
--              all tickets), p_latest (no scan of a priority starts later)
-- Returns:     p_marks (in and out: the marks where the scan of a priority starts) and p_moved (1: they changed);
--              p_items: a JSON array of [id, number of this attempt]; NULL when every group is blocked
--
-- In a grouped queue a row of mq_ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A ticket is only a hint and is read without a lock. A group has places: one in
-- an ordered queue, otherwise group_max_active; and tokens, if it has a rate. A claim reads tickets in claim order, a part
-- at a time. For a group that seems free it locks the stripe (mq_stripe), and skips stripes that others have locked: from
-- then on no other claim can start on the group. A second read shows how many messages the group may have now, and
-- which are its first, whichever messages the tickets belong to.
--
-- No call waits, not even one that finishes messages. MariaDB puts a lock that SKIP LOCKED skips into the lock queue for a
-- moment, and reports a deadlock if the holder really waits for the claim. So one rule keeps groups from getting stuck: in
-- a group that is not blocked, one message in mq_grouped has its own ticket. A call that unblocks a group issues one after
-- its last read of the group. See drop_tickets for the tickets that a claim deletes.
--
-- In a queue without order, several messages of a group may be active. A call that is finishing one of them may have seen
-- less than the claim sees. So a claim that drops tickets of a group it took from issues a new one while messages are left,
-- even if the group is full. If a group has no token, its first message waits like a failed message of an ordered queue:
-- promote brings it back and frees its place.
--
-- Tickets of blocked groups stay. A claim passes them, without locks and with larger parts, and leaves a mark after 1,000
-- of them; the next claims start there. A new ticket of an unblocked group comes after the mark: see issue_tickets.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_grouped(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_take tinyint, IN p_full tinyint,
    IN p_latest datetime(6), INOUT p_marks longtext CHARACTER SET utf8mb4, OUT p_moved tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The maximum number of groups per call: a take keeps stripes locked until its handler ends, and they also block other
    -- groups.
    DECLARE c_groups int DEFAULT 250;
    -- The maximum number of tickets that a claim reads if it has found a message, and if it has not.
    DECLARE c_tickets int DEFAULT 10000;
    DECLARE c_all_tickets int DEFAULT 200000;
    DECLARE c_stride int DEFAULT 1000;
    -- Dropping tickets costs writes and locks. A few tickets of blocked groups stay, and the next claim reads them again.
    DECLARE c_few int DEFAULT 40;
    -- As in take_lanes.
    DECLARE c_most int DEFAULT 1000;
    DECLARE c_again int DEFAULT 50;
    DECLARE c_last_lane varchar(201) CHARACTER SET utf8mb4 DEFAULT REPEAT(CONVERT(x'F48FBFBF' USING utf8mb4), 201);
    DECLARE v_ordered, v_fair, v_stops, v_limits, v_rated, v_plain, v_own tinyint;
    DECLARE v_places, v_rate, v_rate_seconds, v_weight, v_least, v_end, v_turn, v_read_turn, v_gate, v_size, v_count, v_at int;
    DECLARE v_rows, v_locked, v_groups, v_useful, v_lone, v_late, v_junk, v_extra, v_taken_groups, v_is_late, v_heads int;
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_chunk int DEFAULT LEAST(p_size, c_groups);
    DECLARE v_scanned, v_given, v_again, v_in_round, v_resume, v_segment, v_passed int DEFAULT 0;
    DECLARE v_pass, v_wrapped, v_all, v_sure, v_was_clean, v_stop, v_check, v_checked tinyint DEFAULT 0;
    DECLARE v_clean, v_some tinyint DEFAULT 1;
    DECLARE v_priority, v_was_priority int DEFAULT -32769;
    DECLARE v_lane, v_start, v_last_lane varchar(200) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_until varchar(201) CHARACTER SET utf8mb4 DEFAULT c_last_lane;
    DECLARE v_run_at datetime(6) DEFAULT '1000-01-01';
    DECLARE v_id, v_n, v_read_n bigint DEFAULT 0;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_consumer varchar(5) CHARACTER SET utf8mb4;
    DECLARE v_group varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_tickets, v_first, v_found, v_held, v_items, v_taken, v_marks, v_row, v_list, v_tail longtext CHARACTER SET utf8mb4;
    DECLARE v_starts longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    DECLARE groups_found CURSOR FOR
        SELECT j.size, j.late, j.group_key, CONCAT(JSON_QUOTE(j.group_key), ',', j.ticket, ',', j.priority, ',"', j.run_at, '",',
            JSON_QUOTE(j.lane), ',', j.one, ',', j.late, ',', j.rate, ',', j.seconds, ',"', j.full_at, '"')
        FROM JSON_TABLE(v_list, '$[*]' COLUMNS (
            group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[2]', ticket bigint PATH '$[3]', priority smallint PATH '$[4]',
            run_at datetime(6) PATH '$[5]', lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]', one int PATH '$[7]', late int PATH '$[8]',
            rate int PATH '$[9]', seconds int PATH '$[10]', full_at datetime(6) PATH '$[11]', size int PATH '$[12]'
        )) AS j;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_some = 0;
    SELECT ordered, fair, dead_stops_group, IF(ordered, 1, group_max_active), group_rate, group_rate_seconds, group_limits, group_weight
    INTO v_ordered, v_fair, v_stops, v_places, v_rate, v_rate_seconds, v_limits, v_weight
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    -- The first parts read only what is not blocked if there are marks and all tickets are to be read.
    SET p_items = NULL, p_moved = 0, v_rated = v_rate > 0 OR v_limits, v_plain = v_ordered AND NOT v_rated,
        v_own = v_limits OR v_fair AND v_weight > 1, v_left = IF(v_ordered, LEAST(p_size, c_groups), p_size), v_gate = IF(v_ordered, -1, 0),
        v_least = IF(p_full AND NOT v_fair AND JSON_LENGTH(p_marks) > 0, 2, 0), v_starts = IF(p_full OR v_fair, '[]', p_marks),
        v_end = COALESCE(JSON_EXTRACT(v_starts, '$[0][0]'), 32768);
    tickets: LOOP
        IF v_fair AND v_consumer IS NULL THEN
            -- The next priority, after the lane where the last claim stopped: see take_lanes.
            SET v_some = 1, v_in_round = 0, v_n = 0, v_turn = c_most, v_start = '', v_last_lane = NULL;
            SELECT priority INTO v_priority FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority > v_priority AND attempts >= 0
            ORDER BY priority, lane, run_at, id
            LIMIT 1;
            IF NOT v_some THEN
                LEAVE tickets;
            END IF;
            SET v_consumer = LPAD(v_priority + 32768, 5, '0'), v_end = v_priority + 1;
            SELECT n, after_id, lane INTO v_n, v_turn, v_start
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = v_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
            SET v_wrapped = NOT v_some, v_read_n = v_n, v_read_turn = v_turn, v_lane = v_start, v_until = c_last_lane, v_resume = 0;
            IF v_some AND v_weight > v_turn THEN
                SELECT COALESCE(MAX(weight), 1) - v_turn INTO v_resume FROM mq_queue_group WHERE type = p_type AND group_key = v_start;
            END IF;
            -- The turn of this lane may not be over.
            SET v_run_at = IF(v_resume > 0 OR v_wrapped, '1000-01-01', '9999-12-31'), v_id = IF(v_resume > 0 OR v_wrapped, 0, 9223372036854775807);
        END IF;

        -- The next tickets; what: 1 a blocked group, 2 a group that is not blocked, 4 a group without a token, 5 a blocked group
        -- to which the message does not belong now. Only the stripes are locked.
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', k.what, ',', k.locked, ',', JSON_QUOTE(k.group_key),
            ',', JSON_QUOTE(k.lane), ']'), ']'), COUNT(*), COALESCE(SUM(k.locked), 0), COUNT(DISTINCT IF(k.locked, k.group_key, NULL)),
            COALESCE(SUM(k.what = 2), 0), COALESCE(SUM(k.what = 4 AND k.locked), 0), COALESCE(SUM(k.what = 5), 0) > 0 OR NOT v_ordered,
            COALESCE(SUM(k.what = 1), 0) - COUNT(DISTINCT IF(k.what = 1, k.group_key, NULL))
        INTO v_tickets, v_rows, v_locked, v_groups, v_useful, v_late, v_check, v_extra
        FROM (
            SELECT t.id, t.priority, t.run_at, t.lane, t.group_key, t.what, s.n IS NOT NULL AS locked
            FROM (
                SELECT r.id, r.priority, r.run_at, r.lane, COALESCE(m.group_key, '') AS group_key,
                    CASE
                        WHEN m.id IS NULL THEN 5
                        WHEN w.id IS NOT NULL OR NOT v_ordered AND COALESCE(o.max_active, v_places) > 0 AND (
                            SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                            WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '')
                        ) >= COALESCE(o.max_active, v_places) THEN IF(v_least > 0 OR (
                            SELECT g.id FROM mq_grouped AS g FORCE INDEX (PRIMARY)
                            WHERE g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
                        ) IS NOT NULL, 1, 5)
                        WHEN b.full_at > v_now + INTERVAL COALESCE(o.rate_seconds, v_rate_seconds) SECOND
                            - INTERVAL (COALESCE(o.rate_seconds, v_rate_seconds) * 1000000 + COALESCE(o.rate, v_rate) - 1)
                                DIV NULLIF(COALESCE(o.rate, v_rate), 0) MICROSECOND THEN IF(p_take, 1, 4)
                        ELSE 2
                    END AS what
                FROM mq_ready AS r FORCE INDEX (PRIMARY)
                LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
                LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                    ON w.type = m.type AND w.group_key = COALESCE(m.group_key, '') AND w.place = v_gate
                LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY)
                    ON v_limits AND o.type = m.type AND o.group_key = COALESCE(m.group_key, '')
                LEFT JOIN mq_bucket AS b FORCE INDEX (PRIMARY)
                    ON v_rated AND b.type = m.type AND b.group_key = COALESCE(m.group_key, '')
                WHERE r.type = p_type AND r.attempts >= 0 AND r.lane <= v_until
                    AND (r.priority > v_priority AND r.priority < v_end OR r.priority = v_priority AND (r.lane > v_lane
                        OR r.lane = v_lane AND (r.run_at > v_run_at OR r.run_at = v_run_at AND r.id > v_id)))
                HAVING v_least = 0 OR what >= v_least
                ORDER BY r.priority, r.lane, r.run_at, r.id
                LIMIT v_chunk
            ) AS t
            LEFT JOIN mq_stripe AS s FORCE INDEX (PRIMARY)
                ON s.n = IF(t.what >= IF(v_pass, 4, 2), CRC32(CONCAT(p_type, '\n', t.group_key)) MOD 16384, NULL)
            LIMIT v_chunk
            FOR UPDATE /*!80000 OF s */ SKIP LOCKED
        ) AS k;
        IF v_stops AND v_useful + v_late > 0 THEN
            -- Dead letters from before the queue had dead_stops_group are not at the group's place -1. Their groups are blocked too.
            SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', k.what, ',', k.locked, ',', JSON_QUOTE(k.group_key),
                ',', JSON_QUOTE(k.lane), ']' ORDER BY k.n), ']'), COALESCE(SUM(k.locked), 0), COUNT(DISTINCT IF(k.locked, k.group_key, NULL)),
                COALESCE(SUM(k.what = 2), 0), COALESCE(SUM(k.what = 4 AND k.locked), 0),
                COALESCE(SUM(k.what = 1), 0) - COUNT(DISTINCT IF(k.what = 1, k.group_key, NULL))
            INTO v_tickets, v_locked, v_groups, v_useful, v_late, v_extra
            FROM (
                SELECT s.n, s.id, s.priority, s.run_at, s.lane, s.group_key, IF(s.dead > 0 AND s.what <> 5, 1, s.what) AS what,
                    s.locked AND s.dead = 0 AS locked
                FROM (
                    SELECT j.*, (SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                        WHERE l.type = p_type AND l.group_key = j.group_key AND l.place > 0) AS dead
                    FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                        n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', what int PATH '$[3]',
                        locked int PATH '$[4]', lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]',
                        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]'
                    )) AS j
                    LIMIT 10000
                ) AS s
            ) AS k;
        END IF;
        SET v_scanned = v_scanned + v_rows, v_junk = 0, v_checked = 0;
        heads: LOOP
            IF v_check AND NOT v_checked THEN
                -- Messages outside their groups; what: 0 active, failed or finished, 3 sent by a transaction that began before the
                -- queue was grouped: it joins its group.
                SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', k.what, ',', k.locked AND k.what > 0, ',',
                    JSON_QUOTE(k.group_key), ',', JSON_QUOTE(k.lane), ']' ORDER BY k.n), ']'), COALESCE(SUM(k.locked AND k.what > 0), 0),
                    COUNT(DISTINCT IF(k.locked AND k.what > 0, k.group_key, NULL)), COALESCE(SUM(k.what IN (2, 3)), 0),
                    COALESCE(SUM(k.what = 3 AND k.locked), 0), COALESCE(SUM(k.what = 0), 0)
                INTO v_tickets, v_locked, v_groups, v_useful, v_lone, v_junk
                FROM (
                    SELECT j.n, j.id, j.priority, j.run_at, j.locked, j.group_key, j.lane,
                        CASE
                            WHEN j.what = 1 OR g.id IS NOT NULL THEN j.what
                            WHEN m.id IS NULL OR EXISTS (SELECT * FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                                    WHERE l.type = p_type AND l.group_key = j.group_key AND l.id = j.id)
                                OR EXISTS (SELECT * FROM mq_dead AS e FORCE INDEX (PRIMARY) WHERE e.id = j.id)
                                OR EXISTS (SELECT * FROM mq_delayed AS d FORCE INDEX (PRIMARY)
                                    WHERE d.type = p_type AND d.run_at = m.run_at AND d.id = j.id) THEN 0
                            ELSE 3
                        END AS what
                    FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                        n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', what int PATH '$[3]',
                        locked int PATH '$[4]', lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]',
                        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]'
                    )) AS j
                    LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
                    LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.id
                    LIMIT 10000
                ) AS k;
                IF v_lone > 0 THEN
                    INSERT IGNORE INTO mq_grouped (type, group_key, id, attempts)
                    SELECT p_type, j.group_key, j.id, 0
                    FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                        id bigint PATH '$[0]', what int PATH '$[3]', locked int PATH '$[4]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[5]'
                    )) AS j
                    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
                    WHERE j.what = 3 AND j.locked;
                END IF;
                SET v_checked = 1;
            END IF;
            SET v_taken_groups = 0, v_count = 0, v_heads = 0, v_found = NULL, v_held = NULL, v_items = NULL, v_now = UTC_TIMESTAMP(6);
            IF v_locked = 0 THEN
                LEAVE heads;
            END IF;
            SET v_first = v_tickets;
            IF v_groups < v_rows THEN
                -- The first ticket of each group.
                SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",0,1,', JSON_QUOTE(k.group_key), ',',
                    JSON_QUOTE(k.lane), ']' ORDER BY k.n), ']')
                INTO v_first
                FROM (
                    SELECT j.*, ROW_NUMBER() OVER (PARTITION BY j.group_key ORDER BY j.n) AS nth
                    FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                        n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', locked int PATH '$[4]',
                        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]',
                        lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]'
                    )) AS j
                    WHERE j.locked
                ) AS k
                WHERE k.nth = 1;
            END IF;
            IF v_late > 0 AND NOT v_sure THEN
                -- A policy change that commits after this finds the delayed messages and makes them due.
                SELECT COUNT(*), COALESCE(MAX(q.group_rate), v_rate), COALESCE(MAX(q.group_rate_seconds), v_rate_seconds)
                INTO v_sure, v_rate, v_rate_seconds
                FROM (
                    SELECT group_rate, group_rate_seconds FROM mq_queue WHERE type = p_type
                    /*!80000 FOR SHARE SKIP LOCKED */ /*M! LOCK IN SHARE MODE SKIP LOCKED */
                ) AS q;
            END IF;

            -- Under the locks: how many messages each group may have, and in an ordered queue its first one; a group whose
            -- first message another transaction is cancelling or purging is skipped. That message is a column of a derived
            -- table: in a condition, MySQL would search it for each comparison. A constant limit: a table of one row would be
            -- read while MySQL optimizes. If Group Replication rolls back there, the next execution optimizes for ever.
            SELECT GROUP_CONCAT('[', COALESCE(h.head, 'null'), ',', COALESCE(h.attempts, 0) + 1, ',', JSON_QUOTE(h.group_key), ',', h.id, ',',
                h.priority, ',"', h.run_at, '",', JSON_QUOTE(h.lane), ',', h.places = 1,
                IF(v_plain, '', CONCAT(',', h.late, ',', h.rate, ',', h.seconds, ',"', COALESCE(h.full_at, v_now), '",', h.size)), ']'),
                GROUP_CONCAT(IF(h.late, NULL, CONCAT('[', h.head, ',', h.attempts + 1, ']'))),
                GROUP_CONCAT(IF(p_take OR NOT v_ordered OR v_groups < v_locked, JSON_QUOTE(h.group_key), NULL)),
                COUNT(*), COALESCE(SUM(NOT h.late), 0), COALESCE(SUM(h.head = h.id), 0)
            INTO v_found, v_items, v_held, v_taken_groups, v_count, v_heads
            FROM (
                SELECT f.*, g.id AS head, g.attempts
                FROM (
                    SELECT o.*, IF(v_plain, 1, LEAST(v_left, o.turn, IF(o.places > 0, o.places - o.active, v_left),
                            IF(v_rated AND o.rate > 0, GREATEST(o.tokens, v_sure), v_left))) AS size, v_rated AND o.rate > 0 AND o.tokens = 0 AS late
                    FROM (
                        SELECT p.*, (p.seconds * 1000000 - TIMESTAMPDIFF(MICROSECOND, v_now, p.full_at)) * p.rate DIV (p.seconds * 1000000) AS tokens
                        FROM (
                            SELECT j.*, w.id IS NOT NULL AS busy, IF(v_ordered, 1, COALESCE(q.max_active, v_places)) AS places,
                                IF(v_fair, COALESCE(q.weight, 1)
                                    - IF(v_resume > 0 AND CAST(j.group_key AS binary) = CAST(v_start AS binary), v_turn, 0), v_left) AS turn,
                                COALESCE(q.rate, v_rate) AS rate, COALESCE(q.rate_seconds, v_rate_seconds) AS seconds,
                                -- A bucket that is full later than in one period: the clock was set back, or the period is shorter
                                -- now. It is empty and starts to fill now.
                                IF(v_rated, GREATEST(v_now, LEAST(COALESCE(b.full_at, v_now),
                                    v_now + INTERVAL COALESCE(q.rate_seconds, v_rate_seconds) SECOND)), NULL) AS full_at,
                                CASE WHEN NOT v_ordered THEN (SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                                    WHERE l.type = p_type AND l.group_key = j.group_key) ELSE 0 END AS active,
                                CASE WHEN v_ordered THEN (SELECT c.id FROM mq_grouped AS c FORCE INDEX (PRIMARY)
                                    WHERE c.type = p_type AND c.group_key = j.group_key ORDER BY c.id LIMIT 1) END AS first_id
                            FROM JSON_TABLE(v_first, '$[*]' COLUMNS (
                                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                                group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[5]', lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]'
                            )) AS j
                            LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                                ON w.type = p_type AND w.group_key = j.group_key AND w.place = v_gate
                            LEFT JOIN mq_queue_group AS q FORCE INDEX (PRIMARY)
                                ON v_own AND q.type = p_type AND q.group_key = j.group_key
                            LEFT JOIN mq_bucket AS b FORCE INDEX (PRIMARY)
                                ON v_rated AND b.type = p_type AND b.group_key = j.group_key
                            LIMIT 10000
                        ) AS p
                    ) AS o
                ) AS f
                LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = f.group_key AND g.id = f.first_id
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = p_type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
                WHERE NOT f.busy AND f.size > 0 AND IF(v_ordered, g.id IS NOT NULL, 1)
                LIMIT 10000
                FOR UPDATE /*!80000 OF g, r */ SKIP LOCKED
            ) AS h;
            -- A ticket that is not that of the first message may be that of a message outside its group.
            SET v_check = v_heads < v_groups OR v_groups < v_locked;
            IF v_checked OR NOT v_check THEN
                LEAVE heads;
            END IF;
        END LOOP;
        IF v_fair AND v_junk > 0 AND v_again < c_again THEN
            -- The next ticket of these lanes may be of use.
            CALL imq_drop_tickets(p_type, v_tickets, NULL, 0);
            SET v_again = v_again + 1;
            ITERATE tickets;
        END IF;
        IF v_found IS NOT NULL AND NOT v_ordered THEN
            -- As many of each group as it may have.
            SET v_list = CONCAT('[', v_found, ']'), v_found = NULL, v_items = NULL, v_held = NULL, v_count = 0, v_taken_groups = 0, v_some = 1;
            OPEN groups_found;
            taking: LOOP
                IF v_count = v_left THEN
                    LEAVE taking;
                END IF;
                FETCH groups_found INTO v_size, v_is_late, v_group, v_tail;
                IF NOT v_some THEN
                    LEAVE taking;
                END IF;
                SET v_size = LEAST(v_size, v_left - v_count);
                SELECT NULLIF(CONCAT_WS(',', v_found, GROUP_CONCAT('[', g.id, ',', g.attempts + 1, ',', v_tail, ']' ORDER BY g.id)), ''),
                    NULLIF(CONCAT_WS(',', v_items, IF(v_is_late, NULL, GROUP_CONCAT('[', g.id, ',', g.attempts + 1, ']' ORDER BY g.id))), ''),
                    COUNT(*)
                INTO v_found, v_items, v_at
                FROM (
                    SELECT id, attempts FROM mq_grouped FORCE INDEX (PRIMARY)
                    WHERE type = p_type AND group_key = v_group
                    ORDER BY id
                    LIMIT v_size
                    FOR UPDATE SKIP LOCKED
                ) AS g;
                IF v_at > 0 THEN
                    SET v_held = CONCAT_WS(',', v_held, JSON_QUOTE(v_group)), v_taken_groups = v_taken_groups + 1,
                        v_count = v_count + IF(v_is_late, 0, v_at), v_size = v_at;
                END IF;
            END LOOP;
            CLOSE groups_found;
        END IF;

        IF v_found IS NOT NULL THEN
            SET v_list = CONCAT('[', v_found, ']');
            DELETE g, r
            FROM JSON_TABLE(v_list, '$[*]' COLUMNS (
                head bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[2]', id bigint PATH '$[3]',
                priority smallint PATH '$[4]', run_at datetime(6) PATH '$[5]', lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]'
            )) AS j
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.head
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.priority AND r.lane = j.lane AND r.run_at = j.run_at AND r.id = j.id;
            IF NOT p_take OR v_count < v_left THEN
                -- A take that continues with other tickets must not take from one group twice.
                INSERT INTO mq_group_lock (type, group_key, place, id)
                SELECT p_type, j.group_key, CASE WHEN j.late THEN v_gate WHEN j.one THEN -1 ELSE j.head END, j.head
                FROM JSON_TABLE(v_list, '$[*]' COLUMNS (
                    head bigint PATH '$[0]', group_key varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[2]', one int PATH '$[7]', late int PATH '$[8]'
                )) AS j;
            ELSE
                SET v_all = p_items IS NULL;
            END IF;
            IF v_late > 0 AND v_sure THEN
                CALL imq_put_off(p_type, v_list);
            END IF;
            IF v_rated THEN
                INSERT INTO mq_bucket (type, group_key, full_at)
                SELECT p_type, k.group_key, k.full_at
                FROM (
                    SELECT j.group_key, MAX(j.full_at) + INTERVAL (SUM(NOT j.late) * MAX(j.seconds) * 1000000 + MAX(j.rate) - 1)
                        DIV MAX(j.rate) MICROSECOND AS full_at
                    FROM JSON_TABLE(v_list, '$[*]' COLUMNS (
                        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[2]',
                        late int PATH '$[8]', rate int PATH '$[9]', seconds int PATH '$[10]', full_at datetime(6) PATH '$[11]'
                    )) AS j
                    WHERE j.rate > 0
                    GROUP BY j.group_key
                ) AS k
                ON DUPLICATE KEY UPDATE full_at = k.full_at;
            END IF;
            SET p_items = NULLIF(CONCAT_WS(',', p_items, v_items), ''), v_taken = NULLIF(CONCAT_WS(',', v_taken, v_held), ''), v_left = v_left - v_count,
                v_given = v_given + v_taken_groups, v_in_round = v_in_round + v_count;
        END IF;
        -- A take drops no others than it used and spent ones: they must not be hidden until its handler ends.
        IF v_junk > 0 OR NOT p_take AND (v_extra > c_few OR v_held IS NOT NULL AND v_groups < v_locked) THEN
            CALL imq_drop_tickets(p_type, v_tickets, IF(p_take, NULL, CONCAT('[', v_held, ']')), NOT p_take AND v_extra > c_few);
        END IF;

        -- Where the next part begins: when it passes blocked groups, before the first ticket that may be of use.
        -- If none of a part is, the part is read again with more tickets: so those of a blocked group are dropped together.
        SET v_at = IF(v_pass OR v_fair OR v_useful + v_late > 0 OR v_rows < v_chunk, v_rows, 0),
            v_again = 0, v_was_priority = v_priority, v_was_clean = v_clean;
        IF v_pass AND v_useful > 0 THEN
            SELECT MIN(j.n) - 1 INTO v_at
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (n FOR ORDINALITY, what int PATH '$[3]')) AS j WHERE j.what IN (2, 3);
        END IF;
        IF v_at > 0 AND (v_left > 0 OR v_fair OR v_least > 0) THEN
            SET v_row = JSON_EXTRACT(v_tickets, CONCAT('$[', v_at - 1, ']')),
                v_priority = JSON_EXTRACT(v_row, '$[1]'), v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_row, '$[6]')),
                v_run_at = IF(v_fair, '9999-12-31', JSON_UNQUOTE(JSON_EXTRACT(v_row, '$[2]'))),
                v_id = IF(v_fair, 9223372036854775807, JSON_EXTRACT(v_row, '$[0]'));
        END IF;
        SET v_clean = (v_clean OR v_priority > v_was_priority)
            AND (v_pass OR v_taken_groups = v_groups AND v_locked = v_useful + v_late), v_passed = IF(v_clean, v_passed + v_at, 0);
        IF v_pass AND v_passed >= c_stride AND v_least = 0 AND NOT v_fair THEN
            -- The last ticket of each priority.
            SELECT NULLIF(CONCAT_WS(',', v_marks, GROUP_CONCAT('[', k.priority, ',"', k.run_at, '",', k.id, ']' ORDER BY k.priority)), '')
            INTO v_marks
            FROM (
                SELECT j.*, ROW_NUMBER() OVER (PARTITION BY j.priority ORDER BY j.n DESC) AS nth
                FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]'
                )) AS j
                WHERE j.n <= v_at AND (v_was_clean OR j.priority > v_was_priority)
            ) AS k
            WHERE k.nth = 1;
        END IF;
        IF v_fair AND v_at > 0 THEN
            -- The groups after the last taken one keep their turns if the batch is full.
            SET v_n = v_n + v_at - (v_resume > 0), v_last_lane = v_lane;
            IF v_left = 0 THEN
                SET v_row = JSON_UNQUOTE(JSON_EXTRACT(v_list, CONCAT('$[', JSON_LENGTH(v_list) - 1, '][6]'))),
                    v_turn = IF(v_resume > 0 AND CAST(v_row AS binary) = CAST(v_start AS binary), v_turn, 0)
                        + IF(v_ordered, 1, v_size), v_last_lane = v_row;
            ELSE
                SET v_turn = c_most;
            END IF;
            SET v_resume = 0;
        END IF;
        SET v_stop = v_left = 0 OR v_given >= c_groups OR v_scanned >= IF(p_items IS NULL, c_all_tickets, c_tickets);
        IF v_fair AND (v_stop OR v_at = v_rows AND v_rows < v_chunk) THEN
            -- The end of this priority's lanes, or of the claim.
            IF NOT v_stop AND NOT v_wrapped THEN
                SET v_wrapped = 1, v_lane = '', v_run_at = '1000-01-01', v_id = 0, v_until = v_start;
            ELSEIF NOT v_stop AND v_in_round > 0 AND NOT v_ordered THEN
                -- After a round with messages another one may find more. What this claim has taken frees no place.
                CALL imq_issue_tickets(p_type, CONCAT('[', v_taken, ']'));
                SET v_in_round = 0, v_wrapped = 0, v_lane = v_start, v_run_at = '9999-12-31', v_id = 9223372036854775807, v_until = c_last_lane;
            ELSE
                IF v_last_lane IS NOT NULL AND (p_items IS NOT NULL OR v_stop) THEN
                    CALL imq_save_position(p_type, v_consumer, v_n, v_turn, v_last_lane, IF(RAND() < 0.01, 0, v_read_n - 20 * p_size), v_read_n,
                        0, IF(v_n > v_read_n, c_most, v_read_turn));
                END IF;
                SET v_consumer = NULL;
            END IF;
        ELSEIF v_at = v_rows AND v_rows < v_chunk AND v_end < 32768 THEN
            -- The next priority with a mark.
            SET v_priority = v_end, v_lane = '', v_row = JSON_EXTRACT(v_starts, CONCAT('$[', v_segment, ']')), v_segment = v_segment + 1,
                v_end = COALESCE(JSON_EXTRACT(v_starts, CONCAT('$[', v_segment, '][0]')), 32768),
                v_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_row, '$[1]')), v_id = IF(v_run_at < p_latest, JSON_EXTRACT(v_row, '$[2]'), 0),
                v_run_at = LEAST(v_run_at, p_latest), v_clean = 1, v_passed = 0;
        ELSEIF NOT v_fair AND v_at = v_rows AND v_rows < v_chunk THEN
            LEAVE tickets;
        END IF;
        IF v_stop THEN
            LEAVE tickets;
        END IF;
        IF v_pass AND v_at = v_rows OR NOT v_pass AND 2 * v_useful < v_rows THEN
            SET v_pass = 1, v_chunk = LEAST(GREATEST(4 * v_chunk, 100), c_tickets);
        ELSE
            SET v_pass = 0, v_chunk = LEAST(v_left, c_groups - v_given, IF(v_fair AND v_locked > 2 * v_groups, 2 * v_groups, v_left));
        END IF;
    END LOOP;

    IF v_least > 0 AND v_left = 0 THEN
        -- There may be more before the mark of this priority.
        SET v_marks = CONCAT('[', v_priority, ',"', IF(v_clean, v_run_at, CAST('1000-01-01' AS datetime(6))), '",', IF(v_clean, v_id, 0), ']');
    END IF;
    IF v_marks IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.priority, ',"', k.run_at, '",', k.id, ']' ORDER BY k.priority), ']'),
            v_least = 0 OR SUM(k.new AND k.marked)
        INTO v_list, p_moved
        FROM (
            SELECT u.*, ROW_NUMBER() OVER (PARTITION BY u.priority ORDER BY IF(v_least > 0, u.run_at, NULL),
                    IF(v_least > 0, u.id, NULL), u.new DESC, u.n DESC) AS nth,
                SUM(NOT u.new) OVER (PARTITION BY u.priority) AS marked
            FROM (
                SELECT j.n, j.priority, j.run_at, j.id, 1 AS new
                FROM JSON_TABLE(CONCAT('[', v_marks, ']'), '$[*]' COLUMNS (
                    n FOR ORDINALITY, priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
                )) AS j
                UNION ALL
                SELECT j.n, j.priority, j.run_at, j.id, 0
                FROM JSON_TABLE(p_marks, '$[*]' COLUMNS (
                    n FOR ORDINALITY, priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
                )) AS j
            ) AS u
        ) AS k
        WHERE k.nth = 1;
        IF p_moved THEN
            SET p_marks = v_list;
        END IF;
    END IF;
    IF p_items IS NOT NULL THEN
        SET p_items = CONCAT('[', p_items, ']');
        IF p_take OR NOT v_ordered THEN
            SET v_held = CONCAT('[', v_taken, ']');
            IF NOT v_all THEN
                IF p_take THEN
                    -- The caller's own commit finishes the messages. Groups of the last part may have no lock, but need a ticket.
                    CALL imq_drop_locks(p_type, p_items, v_list);
                END IF;
                SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']') INTO v_held
                FROM (
                    SELECT DISTINCT j.group_key
                    FROM JSON_TABLE(v_held, '$[*]' COLUMNS (
                        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
                    )) AS j
                ) AS k;
            END IF;
            CALL imq_issue_tickets(p_type, v_held);
        END IF;
    END IF;
END
