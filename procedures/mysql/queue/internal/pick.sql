-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued
--       and due messages promoted on the way.
-- Arguments:   p_type, p_size, p_take (1: the caller's transaction may be long: see pick_ordered)
-- Returns:     p_items: a JSON array of [id, number of this attempt, ...]; NULL when nothing is ready
-- Errors:      none
-- Transaction: joins the caller's; never waits for another claim
-- Example:     CALL mq_pick('email', 10, 0, @items);
--
-- Low-water marks. While a transaction with a snapshot is open, InnoDB keeps every deleted row, and a claim that begins at
-- the front of the index walks every message done since. So a claim begins where the claims before it began to find
-- any, one place for each priority, kept in mq_mark. Rows may appear below a mark: a transaction that commits late,
-- a take that rolls back. So no claim begins later than one second ago, for senders that are about to commit, and the
-- first claim of every second looks from the very start; after a look that took long, where the dead are many, the next
-- one waits ten times as long, at most 5 seconds. What is put back on purpose calls lower_mark.
--
-- Plans. The server's statistics may call a table empty that holds a backlog, because it is new or behind dead rows. Then
-- MySQL would read all of it, or all of an index that has every column the query names. Reads name their index, here and
-- elsewhere, and a range also a column outside it: attempts >= 0 is always true.

DROP PROCEDURE IF EXISTS mq_pick;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- A mark is renewed when the front has moved by so many ids: a dead row costs a claim 0.1 to 0.2 microseconds, a mark 300.
    DECLARE c_stride bigint DEFAULT 1000;
    -- Priorities beyond the first eight are claimed without marks.
    DECLARE c_marks int DEFAULT 8;
    DECLARE c_long_ago datetime(6) DEFAULT '1000-01-01';
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_ordered, v_full, v_some, v_gap tinyint;
    DECLARE v_write, v_learn tinyint DEFAULT 0;
    DECLARE v_n, v_id, v_first_id, v_moved, v_rescued bigint;
    DECLARE v_looked_at, v_promoted_to, v_run_at, v_from datetime(6);
    DECLARE v_places, v_found, v_due longtext CHARACTER SET utf8mb4;
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    DECLARE v_promote int DEFAULT IF(p_take, p_size, GREATEST(2 * p_size, 100));
    DECLARE v_all_promoted tinyint DEFAULT 1;
    DECLARE v_left, v_next, v_known int;
    DECLARE v_above int DEFAULT -32769;
    DECLARE i int DEFAULT 0;

    SET p_items = NULL;
    SELECT ordered INTO v_ordered FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_places = '[]';
        SELECT n, looked_at, promoted_to, places INTO v_n, v_looked_at, v_promoted_to, v_places
        FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type ORDER BY n DESC LIMIT 1;
    END;
    -- The time of a look may lie ahead, but not by as much as a clock that was set back makes it.
    -- A look may be noted up to 5 s ahead, but never a promotion: the clock was set back since.
    SET v_full = COALESCE(v_now NOT BETWEEN v_looked_at - INTERVAL 6 SECOND AND v_looked_at + INTERVAL 1 SECOND
        OR v_promoted_to > v_now + INTERVAL 100000 MICROSECOND, 1);

    IF v_full THEN
        SELECT EXISTS (
            SELECT * FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type AND lease_until <= v_now AND lease_seconds >= 0
        ) INTO v_some;
        IF v_some THEN
            CALL mq_rescue(p_type, IF(p_take, 1, 20), v_rescued);
        END IF;
        SET v_promoted_to = c_long_ago;
    END IF;

    -- Not IF EXISTS (...): in an IF or a SET the server locks what it reads.
    SELECT EXISTS (
        SELECT * FROM mq_delayed FORCE INDEX (PRIMARY)
        WHERE type = p_type AND run_at > v_promoted_to AND run_at <= v_now AND attempts >= 0
    ) INTO v_some;
    IF v_some THEN
        CALL mq_promote(p_type, v_promoted_to, v_now, v_promote, v_moved, v_due);
        SET v_all_promoted = v_moved < v_promote;
        IF NOT v_full AND v_due IS NOT NULL THEN
            -- What has become due before the place of its priority's mark lowers that mark.
            SELECT CONCAT('[', GROUP_CONCAT('[', k.priority, ',"', LEAST(k.run_at, COALESCE(d.run_at, k.run_at)), '",',
                IF((d.run_at, d.id) < (k.run_at, k.id), d.id, k.id), ']' ORDER BY k.priority), ']'),
                COALESCE(SUM((d.run_at, d.id) < (k.run_at, k.id)), 0) > 0
            INTO v_places, v_write
            FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
                priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
            )) AS k
            LEFT JOIN JSON_TABLE(v_due, '$[*]' COLUMNS (
                priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
            )) AS d ON d.priority = k.priority;
            SET v_places = COALESCE(v_places, '[]');
        END IF;
    END IF;

    IF v_ordered THEN
        CALL mq_pick_ordered(p_type, p_size, p_take, p_items);
        SET v_write = v_full AND p_items IS NOT NULL;
        SET v_places = '[]';
        SET v_all_promoted = 0;
        SET v_left = 0;
    ELSE
        SET v_left = p_size;
    END IF;

    -- Known priorities begin at their marks, the gaps between them at their start; a full look is one wide gap.
    SET v_known = IF(v_full, 0, JSON_LENGTH(v_places));
    look: WHILE v_left > 0 DO
        SET v_next = IF(i < v_known, JSON_EXTRACT(v_places, CONCAT('$[', i, '][0]')), 32768);
        SET v_gap = v_next - v_above > 1;
        -- Going up, MariaDB walks the dead rows behind the end of a range: here all those before the mark. Going down it
        -- does not meet them.
        /*M! IF v_gap AND v_next < 32768 THEN
            SELECT (
                SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND priority > v_above AND priority < v_next
                ORDER BY priority DESC, run_at DESC, id DESC LIMIT 1
            ) IS NOT NULL INTO v_gap;
        END IF; */
        IF v_gap THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
                ORDER BY r.priority, r.run_at, r.id), ']')
            INTO v_found
            FROM (
                SELECT id, attempts, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority > v_above AND priority < v_next
                ORDER BY priority, run_at, id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, p_items);
                SET v_left = p_size - JSON_LENGTH(p_items);
                -- A priority that has no mark yet gets one from the full look of the next claim.
                SET v_write = v_write OR v_full;
                SET v_learn = NOT v_full AND v_known < c_marks;
                IF v_full THEN
                    SELECT CONCAT('[', GROUP_CONCAT('[', l.priority, ',"', l.run_at, '",', l.id, ']' ORDER BY l.priority), ']')
                    INTO v_places
                    FROM (
                        SELECT priority, run_at, id
                        FROM (
                            SELECT u.*, ROW_NUMBER() OVER (
                                PARTITION BY u.priority ORDER BY u.fresh DESC, u.run_at, u.id
                            ) AS nth
                            FROM (
                                SELECT f.priority, f.run_at, f.id, 1 AS fresh
                                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (
                                    id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]'
                                )) AS f
                                UNION ALL
                                SELECT m.priority, m.run_at, m.id, 0
                                FROM JSON_TABLE(v_places, '$[*]' COLUMNS (
                                    priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
                                )) AS m
                            ) AS u
                        ) AS p
                        WHERE p.nth = 1
                        ORDER BY priority
                        LIMIT 8
                    ) AS l;
                END IF;
            END IF;
        END IF;
        IF v_next = 32768 OR v_left = 0 THEN
            LEAVE look;
        END IF;

        SET v_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_places, CONCAT('$[', i, '][1]')));
        SET v_id = JSON_EXTRACT(v_places, CONCAT('$[', i, '][2]'));
        SET v_from = LEAST(v_run_at, v_now - INTERVAL 1 SECOND);
        SET v_first_id = IF(v_from = v_run_at, v_id, 0);
        SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
            ORDER BY r.run_at, r.id), ']')
        INTO v_found
        FROM (
            SELECT id, attempts, priority, run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority = v_next AND (run_at > v_from OR run_at = v_from AND id >= v_first_id)
            ORDER BY priority, run_at, id
            LIMIT v_left
            FOR UPDATE SKIP LOCKED
        ) AS r;
        IF v_found IS NOT NULL THEN
            CALL mq_take_ready(p_type, v_found, p_items);
            SET v_left = p_size - JSON_LENGTH(p_items);
            SET v_first_id = JSON_EXTRACT(v_found, '$[0][0]');
            SET v_write = v_write OR v_first_id NOT BETWEEN v_id - c_stride AND v_id + c_stride;
            SET v_places = JSON_REPLACE(v_places,
                CONCAT('$[', i, '][1]'), JSON_UNQUOTE(JSON_EXTRACT(v_found, '$[0][3]')),
                CONCAT('$[', i, '][2]'), v_first_id);
        END IF;
        SET v_above = v_next;
        SET i = i + 1;
    END WHILE;

    IF v_full AND p_items IS NULL AND JSON_LENGTH(v_places) > 0 AND UTC_TIMESTAMP(6) > v_now + INTERVAL 5000 MICROSECOND THEN
        -- Nothing there but many dead rows to walk: idle consumers need not do it all the time.
        SELECT CONCAT('[', GROUP_CONCAT('[', m.priority, ',"', v_now, '",0]' ORDER BY m.priority), ']')
        INTO v_places
        FROM JSON_TABLE(v_places, '$[*]' COLUMNS (priority smallint PATH '$[0]')) AS m;
        SET v_write = 1;
    END IF;
    IF v_write OR v_learn THEN
        INSERT INTO mq_mark (n, looked_at, promoted_to, type, places)
        VALUES (COALESCE(v_n, 0) + 1,
            CASE
                WHEN v_learn THEN c_long_ago
                WHEN v_full THEN
                    v_now + INTERVAL LEAST(10 * TIMESTAMPDIFF(MICROSECOND, v_now, UTC_TIMESTAMP(6)), 5000000) MICROSECOND
                ELSE v_looked_at
            END,
            IF(v_all_promoted, v_now, c_long_ago), p_type, v_places);
        -- A mark that another claim is deleting stays until a later one passes by: they are few and never read.
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
        INTO v_found
        FROM (
            SELECT id FROM mq_mark FORCE INDEX (mark_newest)
            WHERE type = p_type AND n BETWEEN v_n - 20 AND v_n AND looked_at >= c_long_ago
            FOR UPDATE SKIP LOCKED
        ) AS k;
        IF v_found IS NOT NULL THEN
            DELETE k
            FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_mark AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
        END IF;
    END IF;
END//

DELIMITER ;
