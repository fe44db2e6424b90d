-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_wraparound('crawl', 10, 'worker-1', NULL, NULL);
--
-- An index by id would cost every other queue as much again as its claims. Instead, the first call that finds something makes
-- the type a ring: its messages stand in mq_ready at one priority and one run_at, so that the order of its key is that of
-- the ids, for claim_batch too. What was sent before is moved there in steps of 2,000, by one claim at a time: the others
-- pass over the rows that it has locked, and MariaDB pays 290 bytes of its lock table for each. The reader's place, whose row
-- says that the type is a ring, is inserted, not updated, as in mq_mark: nobody waits for it.

DROP PROCEDURE IF EXISTS mq_claim_wraparound;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_wraparound(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_reader longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint,
    IN p_after_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_ordered, v_paused, v_expired, v_due, v_outside, v_mover tinyint;
    DECLARE v_seconds, v_left, v_near int;
    DECLARE v_reader varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_n, v_after, v_moved bigint;
    DECLARE v_items, v_found longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('type', p_type, 0);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_require_name('reader', p_reader, 1);
    CALL mq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    CALL mq_begin_call(1, v_own);
    CALL mq_reader_name(p_reader, v_reader);
    SELECT ordered, paused, COALESCE(p_lease_seconds, lease_seconds)
    INTO v_ordered, v_paused, v_seconds
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_ordered THEN
        CALL mq_raise_error('queue_is_ordered', CONCAT('claim_wraparound goes by id and would break the order of ',
            p_type, '; use claim_batch'));
    END IF;

    IF NOT v_paused THEN
        SELECT EXISTS (
                SELECT * FROM mq_batch FORCE INDEX (batch_lease)
                WHERE type = p_type AND lease_until <= v_now AND lease_seconds >= 0
            ),
            EXISTS (SELECT * FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type AND run_at <= v_now AND attempts >= 0)
        INTO v_expired, v_due;
        IF v_expired THEN
            CALL mq_rescue(p_type, 20, v_moved);
        END IF;
        IF v_due THEN
            CALL mq_promote(p_type, '1000-01-01', v_now, GREATEST(2 * COALESCE(p_size, 1), 100), v_moved, v_found);
        END IF;

        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = 0;
            SELECT n, after_id INTO v_n, v_after
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader ORDER BY n DESC LIMIT 1;
        END;
        SET v_after = COALESCE(p_after_id, v_after, 0);
        SET v_left = COALESCE(p_size, 1);
        -- What stands at an ordinary place: sent before the type was a ring, or by a sender who did not see it yet.
        SELECT EXISTS (
            SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
        ) INTO v_outside;
        IF v_outside AND v_own THEN
            -- Only where we commit at once: until then nobody sees what is on its way.
            SELECT COUNT(*) INTO v_mover
            FROM (SELECT n FROM mq_stripe WHERE n = CRC32(p_type) MOD 16384 FOR UPDATE SKIP LOCKED) AS s;
        END IF;
        IF v_mover THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts, ',', r.priority, ',"', r.run_at, '"]'), ']')
            INTO v_found
            FROM (
                SELECT id, attempts, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01')
                ORDER BY priority, run_at, id
                LIMIT 2000
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, v_items);
                SET v_items = NULL;
                INSERT INTO mq_ready (type, priority, run_at, id, attempts)
                SELECT p_type, -32768, '1000-01-01', j.id, j.attempts
                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]', attempts smallint PATH '$[1]')) AS j;
            END IF;
            SELECT EXISTS (
                SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
            ) INTO v_outside;
        END IF;
        IF v_outside THEN
            -- More than is wanted, because others have locked some of them: the mover 2,000, claims what they take.
            SET v_near = v_left + 1000;
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.priority, ',"', r.run_at, '"]'
                ORDER BY r.id <= v_after, r.id), ']')
            INTO v_found
            FROM (
                (SELECT id, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
                ORDER BY priority, run_at, id
                LIMIT 4000)
                UNION ALL
                (SELECT id, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > v_after AND attempts >= 0
                ORDER BY id
                LIMIT v_near)
                UNION ALL
                (SELECT id, priority, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id <= v_after AND attempts >= 0
                ORDER BY id
                LIMIT v_near)
            ) AS r;
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
                ORDER BY r.id <= v_after, r.id), ']')
            INTO v_found
            FROM (
                SELECT r.id, r.attempts, r.priority, r.run_at
                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]'
                )) AS j
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id
                LIMIT v_left
                FOR UPDATE /*!80000 OF r */ SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, v_items);
            END IF;
            SET v_left = 0;
        ELSE
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',-32768,"1000-01-01"]' ORDER BY r.id), ']')
            INTO v_found
            FROM (
                SELECT id, attempts
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > v_after
                ORDER BY id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, v_items);
                SET v_left = v_left - JSON_LENGTH(v_found);
            END IF;
        END IF;
        IF v_left > 0 THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',-32768,"1000-01-01"]' ORDER BY r.id), ']')
            INTO v_found
            FROM (
                SELECT id, attempts
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id <= v_after
                ORDER BY id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, v_items);
            END IF;
        END IF;
    END IF;

    IF v_items IS NULL THEN
        CALL mq_no_messages();
    ELSE
        INSERT INTO mq_ring (n, after_id, type, reader)
        VALUES (v_n + 1, JSON_EXTRACT(v_items, CONCAT('$[', JSON_LENGTH(v_items) - 1, '][0]')), p_type, v_reader);
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
        INTO v_found
        FROM (
            SELECT id FROM mq_ring FORCE INDEX (ring_newest)
            WHERE type = p_type AND reader = v_reader AND n BETWEEN v_n - 20 AND v_n AND after_id >= 0
            FOR UPDATE SKIP LOCKED
        ) AS k;
        IF v_found IS NOT NULL THEN
            DELETE k
            FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
        END IF;
        CALL mq_hold(p_type, v_items, v_reader, v_seconds);
    END IF;
    CALL mq_end_call(v_own);
END//

DELIMITER ;
