-- estimate: estimate how many messages of a type one of the queue's tables holds, from a sample.
-- Arguments:   p_table (ready, grouped, due or delayed: the two parts of mq_delayed, or dead), p_type, p_now
-- Returns:     p_estimate: the estimate, at least 10,001
-- Transaction: reads only: the first and last index entries, and 400 messages by their id
--
-- It searches the messages with 400 ids, spread from the lowest to the highest id that it finds at both ends of the index.
-- The share of ids found gives the number. Dead letters have few of the ids, so they are sampled by their own numbers.
-- The server's statistics are not used: queues change faster.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_estimate(
    IN p_table varchar(10) CHARACTER SET utf8mb4, IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6),
    OUT p_estimate bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE c_sample int DEFAULT 400;
    DECLARE c_ends int DEFAULT 100;
    DECLARE v_priorities int DEFAULT 16;
    DECLARE v_priority int DEFAULT -32769;
    DECLARE v_after, v_until datetime(6);
    DECLARE v_low, v_high, v_from, v_to, v_found bigint;
    DECLARE v_claimed bigint DEFAULT 0;
    -- No further priority.
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_priorities = 0;
    IF p_table = 'ready' THEN
        -- Each priority has its own order of ids.
        WHILE v_priorities > 0 DO
            SET v_priorities = v_priorities - 1;
            SELECT priority INTO v_priority FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority > v_priority ORDER BY priority LIMIT 1;
            SELECT MIN(e.id), MAX(e.id) INTO v_from, v_to
            FROM (
                (SELECT id FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND priority = v_priority
                ORDER BY lane, run_at, id LIMIT c_ends)
                UNION ALL
                (SELECT id FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type AND priority = v_priority
                ORDER BY lane DESC, run_at DESC, id DESC LIMIT c_ends)
            ) AS e;
            SET v_low = LEAST(COALESCE(v_low, v_from), v_from), v_high = GREATEST(COALESCE(v_high, v_to), v_to);
        END WHILE;
    ELSEIF p_table = 'grouped' THEN
        SELECT MIN(e.id), MAX(e.id) INTO v_low, v_high
        FROM (
            (SELECT id FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = p_type ORDER BY group_key, id LIMIT c_ends)
            UNION ALL
            (SELECT id FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = p_type ORDER BY group_key DESC, id DESC LIMIT c_ends)
        ) AS e;
    ELSEIF p_table IN ('due', 'delayed') THEN
        SET v_after = IF(p_table = 'due', '1000-01-01', p_now), v_until = IF(p_table = 'due', p_now, '9999-12-31');
        SELECT MIN(e.id), MAX(e.id) INTO v_low, v_high
        FROM (
            (SELECT id FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type AND run_at > v_after AND run_at <= v_until
            ORDER BY run_at, id LIMIT c_ends)
            UNION ALL
            (SELECT id FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type AND run_at > v_after AND run_at <= v_until
            ORDER BY run_at DESC, id DESC LIMIT c_ends)
        ) AS e;
    ELSE
        SELECT MIN(e.n), MAX(e.n) INTO v_low, v_high
        FROM (
            (SELECT n FROM mq_dead FORCE INDEX (dead_age) WHERE type = p_type ORDER BY died_at, id LIMIT c_ends)
            UNION ALL
            (SELECT n FROM mq_dead FORCE INDEX (dead_age) WHERE type = p_type ORDER BY died_at DESC, id DESC LIMIT c_ends)
        ) AS e;
    END IF;
    -- Irregular steps, but the same in each call: messages of two queues may alternate.
    IF p_table = 'dead' THEN
        SELECT COUNT(*) INTO v_found
        FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', c_sample - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) AS s
        STRAIGHT_JOIN mq_dead AS e FORCE INDEX (dead_n) ON e.n = v_low + CAST(FLOOR(
            (s.i - 1 + MOD(s.i * 61803399, 100000000) / 1e8) * (v_high - v_low + 1) / c_sample) AS SIGNED)
        WHERE e.type = p_type;
    ELSE
        SELECT COUNT(*) INTO v_found
        FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', c_sample - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) AS s
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = v_low + CAST(FLOOR(
            (s.i - 1 + MOD(s.i * 61803399, 100000000) / 1e8) * (v_high - v_low + 1) / c_sample) AS SIGNED)
        LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = m.id
        LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        WHERE m.type = p_type AND e.id IS NULL AND p_table = CASE WHEN d.run_at <= p_now THEN 'due'
            WHEN d.run_at > p_now THEN 'delayed' WHEN p_table = 'grouped' THEN 'grouped' ELSE 'ready' END;
    END IF;
    IF p_table IN ('ready', 'grouped') THEN
        -- The sample does not show which messages are claimed.
        SELECT COALESCE(SUM(JSON_LENGTH(items)), 0) INTO v_claimed FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type;
    END IF;
    SET p_estimate = GREATEST(COALESCE(ROUND(v_found * (v_high - v_low + 1) / c_sample), 0) - v_claimed, 10001);
END
