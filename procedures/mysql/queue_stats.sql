-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   p_type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks, and never more than 10,001 index entries a number
-- Example:     CALL mq_queue_stats(NULL);
--
-- A caller gets one result set: the rows are put together as JSON first.

DROP PROCEDURE IF EXISTS mq_queue_stats;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_queue_stats(
    IN p_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_now, v_oldest datetime(6);
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_ready, v_due, v_delayed, v_active, v_expired, v_dead bigint;
    DECLARE v_ordered, v_paused tinyint;
    DECLARE v_rows longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    CALL mq_require_name('type', p_type, 1);
    SET v_now = UTC_TIMESTAMP(6);
    SET v_type = COALESCE(p_type, '');
    types: LOOP
        IF p_type IS NULL THEN
            -- The next type by name, from the front of each index. The policy without a name is no type.
            SELECT MIN(t.type) INTO v_type
            FROM (
                (SELECT type FROM mq_queue WHERE type > v_type ORDER BY type LIMIT 1)
                UNION ALL
                (SELECT type FROM mq_ready FORCE INDEX (PRIMARY) WHERE type > v_type AND attempts >= 0 ORDER BY type LIMIT 1)
                UNION ALL
                (SELECT type FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type > v_type AND attempts >= 0 ORDER BY type LIMIT 1)
                UNION ALL
                (SELECT type FROM mq_batch FORCE INDEX (batch_lease)
                WHERE type > v_type AND lease_seconds >= 0 ORDER BY type LIMIT 1)
                UNION ALL
                (SELECT type FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type > v_type AND attempts >= 0 ORDER BY type LIMIT 1)
                UNION ALL
                (SELECT type FROM mq_dead FORCE INDEX (dead_age) WHERE type > v_type AND attempts >= 0 ORDER BY type LIMIT 1)
            ) AS t;
            IF v_type IS NULL THEN
                LEAVE types;
            END IF;
        END IF;
        SELECT ordered, paused INTO v_ordered, v_paused
        FROM mq_queue WHERE type IN (v_type, '') ORDER BY type DESC LIMIT 1;
        IF v_ordered THEN
            SELECT COUNT(*), MIN(m.run_at) INTO v_ready, v_oldest
            FROM (SELECT id FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = v_type LIMIT 10001) AS g
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = g.id;
        ELSE
            SELECT COUNT(*) INTO v_ready FROM (SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = v_type LIMIT 10001) AS r;
            -- By way of the message: in a ring the place in mq_ready tells no time.
            SELECT MIN(m.run_at) INTO v_oldest
            FROM (SELECT id FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = v_type ORDER BY priority, run_at, id LIMIT 1) AS r
            STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id;
        END IF;
        SELECT COUNT(*), COALESCE(v_oldest, MIN(d.run_at)) INTO v_due, v_oldest
        FROM (
            SELECT run_at FROM mq_delayed FORCE INDEX (PRIMARY)
            WHERE type = v_type AND run_at <= v_now AND attempts >= 0 ORDER BY run_at, id LIMIT 10001
        ) AS d;
        SELECT COUNT(*) INTO v_delayed
        FROM (
            SELECT 1 FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = v_type AND run_at > v_now AND attempts >= 0 LIMIT 10001
        ) AS d;
        SELECT COALESCE(SUM(IF(b.lease_until > v_now, JSON_LENGTH(b.items), 0)), 0),
            COALESCE(SUM(IF(b.lease_until > v_now, 0, JSON_LENGTH(b.items))), 0)
        INTO v_active, v_expired
        FROM (SELECT items, lease_until FROM mq_batch FORCE INDEX (batch_lease) WHERE type = v_type LIMIT 10001) AS b;
        SELECT COUNT(*) INTO v_dead FROM (SELECT 1 FROM mq_dead FORCE INDEX (dead_age) WHERE type = v_type LIMIT 10001) AS e;
        SET v_ready = v_ready + v_due;
        SET v_rows = JSON_ARRAY_APPEND(v_rows, '$', JSON_ARRAY(v_type, LEAST(v_ready, 10000), LEAST(v_delayed, 10000),
            LEAST(v_active, 10000), LEAST(v_expired, 10000), LEAST(v_dead, 10000),
            GREATEST(TIMESTAMPDIFF(MICROSECOND, v_oldest, v_now), 0),
            GREATEST(v_ready, v_delayed, v_active, v_expired, v_dead) > 10000, v_paused));
        IF p_type IS NOT NULL THEN
            LEAVE types;
        END IF;
    END LOOP;
    SELECT j.type, j.ready, j.waiting AS `delayed`, j.active, j.expired, j.dead,
        j.microseconds / 1e6 AS oldest_ready_seconds, j.capped, j.paused
    FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (n FOR ORDINALITY, type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        ready bigint PATH '$[1]', waiting bigint PATH '$[2]', active bigint PATH '$[3]', expired bigint PATH '$[4]',
        dead bigint PATH '$[5]', microseconds bigint PATH '$[6]', capped tinyint PATH '$[7]',
        paused tinyint PATH '$[8]')) AS j
    ORDER BY j.n;
END//

DELIMITER ;
