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
-- pass over the rows that it has locked, and MariaDB pays 290 bytes of its lock table for each. The reader's place, round and
-- id, whose row says that the type is a ring, is inserted, not updated, as in mq_mark: nobody waits for it, and of two claims of
-- one reader that began at the same place the one that went further counts.
--
-- Low-water mark. A claim that comes short goes round to the lowest id, and while a transaction with a snapshot is open it walks
-- all that is done up to the first message that is left; so it does where it looks for what is due or outside. If that took
-- long, the next claims begin there, for ten times as long as it took, at most 5 seconds: the mark is the place of a reader
-- without a name, good until low_until. What comes back below it calls lower_ring; what a late sender commits there waits for
-- the next look from the very start.

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
    DECLARE v_n, v_place_after, v_after, v_moved, v_low_n, v_low_after, v_next_id, v_last bigint;
    DECLARE v_low_until, v_low_promoted_to, v_begun datetime(6);
    DECLARE v_full tinyint DEFAULT 0;
    DECLARE v_from bigint DEFAULT -9223372036854775807;
    DECLARE v_promoted_to datetime(6) DEFAULT '1000-01-01';
    DECLARE v_walked, v_again bigint DEFAULT 0;
    DECLARE v_tries int DEFAULT 0;
    -- Microseconds; to walk 1,000 dead rows takes 100 to 200.
    DECLARE c_long int DEFAULT 500;
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
        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_full = 1;
            SELECT n, after_id, low_until, promoted_to INTO v_low_n, v_low_after, v_low_until, v_low_promoted_to
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = '' ORDER BY n DESC, after_id DESC LIMIT 1;
        END;
        -- Ahead by more than the longest pause, or something promoted in a time to come: the clock was set back.
        IF v_now < v_low_until AND v_now > v_low_until - INTERVAL 6 SECOND AND v_low_promoted_to <= v_now THEN
            SET v_from = v_low_after;
            SET v_promoted_to = v_low_promoted_to;
        ELSE
            SET v_full = 1;
        END IF;
        -- What takes long at first, pages that nobody has read for a while, does not take long again.
        looks: LOOP
            SET v_begun = UTC_TIMESTAMP(6);
            SET v_expired = 0;
            SET v_outside = 0;
            IF v_full THEN
                SELECT EXISTS (
                        SELECT * FROM mq_batch FORCE INDEX (batch_lease)
                        WHERE type = p_type AND lease_until <= v_now AND lease_seconds >= 0
                    ),
                    -- What stands at an ordinary place: sent before the type was a ring, or by a sender who did not see it yet.
                    EXISTS (
                        SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
                        WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01')
                            AND attempts >= 0
                    )
                INTO v_expired, v_outside;
            END IF;
            SELECT EXISTS (
                SELECT * FROM mq_delayed FORCE INDEX (PRIMARY)
                WHERE type = p_type AND run_at > v_promoted_to AND run_at <= v_now AND attempts >= 0
            ) INTO v_due;
            SET v_walked = TIMESTAMPDIFF(MICROSECOND, v_begun, UTC_TIMESTAMP(6));
            SET v_tries = v_tries + 1;
            IF v_walked < c_long OR v_tries = 2 THEN
                LEAVE looks;
            END IF;
        END LOOP;
        IF v_expired THEN
            CALL mq_rescue(p_type, 20, v_moved);
        END IF;
        IF v_due THEN
            CALL mq_promote(p_type, v_promoted_to, v_now, GREATEST(2 * COALESCE(p_size, 1), 100), v_moved, v_found);
            SET v_due = v_moved >= GREATEST(2 * COALESCE(p_size, 1), 100);
        END IF;
        IF v_full AND (v_expired OR v_moved > 0) THEN
            -- In a type that is no ring yet what has come back stands at its ordinary place.
            SELECT EXISTS (
                SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
            ) INTO v_outside;
        END IF;

        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = NULL;
            SELECT n, after_id INTO v_n, v_place_after
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader
            ORDER BY n DESC, after_id DESC LIMIT 1;
        END;
        SET v_after = COALESCE(p_after_id, v_place_after, 0);
        SET v_left = COALESCE(p_size, 1);
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
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > GREATEST(v_after, v_from)
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
            SET v_tries = 0;
            probes: LOOP
                SET v_begun = UTC_TIMESTAMP(6);
                SET v_next_id = NULL;
                IF v_items IS NULL THEN
                    SELECT MAX(r.id) INTO v_last
                    FROM (
                        SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
                        WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > GREATEST(v_after, v_from)
                            AND attempts >= 0
                        ORDER BY id LIMIT 1
                    ) AS r;
                END IF;
                SELECT MAX(r.id) INTO v_next_id
                FROM (
                    SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
                    WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > v_from AND id <= v_after
                        AND attempts >= 0
                    ORDER BY id LIMIT 1
                ) AS r;
                SET v_again = TIMESTAMPDIFF(MICROSECOND, v_begun, UTC_TIMESTAMP(6));
                SET v_tries = v_tries + 1;
                IF v_again < c_long OR v_tries = 2 THEN
                    LEAVE probes;
                END IF;
            END LOOP;
            SET v_walked = v_walked + v_again;
            SET v_from = COALESCE(v_next_id - 1, GREATEST(v_after, v_from));
        END IF;
        IF v_next_id IS NOT NULL THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',-32768,"1000-01-01"]' ORDER BY r.id), ']')
            INTO v_found
            FROM (
                SELECT id, attempts
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id >= v_next_id AND id <= v_after
                ORDER BY id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found IS NOT NULL THEN
                CALL mq_take_ready(p_type, v_found, v_items);
            END IF;
        END IF;
        IF v_walked > c_long AND NOT v_outside AND (v_items IS NOT NULL OR v_n IS NOT NULL) THEN
            INSERT INTO mq_ring (n, after_id, low_until, promoted_to, type, reader)
            VALUES (COALESCE(v_low_n, 0) + 1, v_from,
                IF(v_full, UTC_TIMESTAMP(6) + INTERVAL LEAST(10 * v_walked, 5000000) MICROSECOND, v_low_until),
                -- Not up to now: somebody may be about to commit what he has failed.
                IF(v_due, v_promoted_to, v_now - INTERVAL 1 SECOND), p_type, '');
            SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
            INTO v_found
            FROM (
                SELECT id FROM mq_ring FORCE INDEX (ring_newest)
                WHERE type = p_type AND reader = '' AND n BETWEEN v_low_n - 20 AND v_low_n AND low_until >= '1000-01-01'
                FOR UPDATE SKIP LOCKED
            ) AS k;
            IF v_found IS NOT NULL THEN
                DELETE k
                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
                STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
            END IF;
        END IF;
    END IF;

    IF v_items IS NULL THEN
        CALL mq_no_messages();
    ELSE
        SET v_last = JSON_EXTRACT(v_items, CONCAT('$[', JSON_LENGTH(v_items) - 1, '][0]'));
        INSERT INTO mq_ring (n, after_id, type, reader)
        VALUES (COALESCE(v_n, 0) + (p_after_id IS NOT NULL) + (v_last <= v_after), v_last, p_type, v_reader);
        -- The place before, those that other claims left a little behind it, and at the end of a round the last two.
        IF p_after_id IS NULL AND v_last > v_after THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
            INTO v_found
            FROM (
                SELECT id FROM mq_ring FORCE INDEX (ring_newest)
                WHERE type = p_type AND reader = v_reader AND n = v_n
                    AND after_id BETWEEN v_place_after - 20 * COALESCE(p_size, 1) AND v_place_after AND low_until IS NULL
                FOR UPDATE SKIP LOCKED
            ) AS k;
        ELSE
            SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
            INTO v_found
            FROM (
                SELECT id FROM mq_ring FORCE INDEX (ring_newest)
                WHERE type = p_type AND reader = v_reader AND n BETWEEN v_n - 1 AND v_n AND low_until IS NULL
                FOR UPDATE SKIP LOCKED
            ) AS k;
        END IF;
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
