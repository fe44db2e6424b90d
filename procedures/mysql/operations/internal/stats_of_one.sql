-- stats_of_one: the row of queue_stats for one type.
-- Returns:     the columns of queue_stats
-- Transaction: reads only, at most 10,001 rows of each table, and all claims; see estimate

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_stats_of_one(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_oldest datetime(6);
    DECLARE v_ready, v_due, v_delayed, v_active, v_expired, v_dead bigint;
    DECLARE v_grouped, v_paused tinyint;
    DECLARE v_sample int;
    SELECT grouped, paused, IF(fair, 10001, 1) INTO v_grouped, v_paused, v_sample
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_grouped THEN
        SELECT COUNT(*), MIN(m.run_at) INTO v_ready, v_oldest
        FROM (SELECT id FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = p_type LIMIT 10001) AS g
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = g.id;
    ELSE
        SELECT COUNT(*) INTO v_ready FROM (SELECT 1 FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type LIMIT 10001) AS r;
        -- From the message: in a ring the position in mq_ready is not a time. In a fair queue the first row is not the oldest.
        SELECT MIN(m.run_at) INTO v_oldest
        FROM (SELECT id FROM mq_ready FORCE INDEX (PRIMARY) WHERE type = p_type ORDER BY priority, lane, run_at, id LIMIT v_sample) AS r
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id;
    END IF;
    SELECT COUNT(*), COALESCE(v_oldest, MIN(d.run_at)) INTO v_due, v_oldest
    FROM (
        SELECT run_at FROM mq_delayed FORCE INDEX (PRIMARY)
        WHERE type = p_type AND run_at <= p_now AND attempts >= 0 ORDER BY run_at, id LIMIT 10001
    ) AS d;
    SELECT COUNT(*) INTO v_delayed
    FROM (
        SELECT 1 FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type AND run_at > p_now AND attempts >= 0 LIMIT 10001
    ) AS d;
    SELECT COALESCE(SUM(IF(b.lease_until > p_now, JSON_LENGTH(b.items), 0)), 0),
        COALESCE(SUM(IF(b.lease_until > p_now, 0, JSON_LENGTH(b.items))), 0)
    INTO v_active, v_expired
    FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type;
    SELECT COUNT(*) INTO v_dead FROM (SELECT 1 FROM mq_dead FORCE INDEX (dead_age) WHERE type = p_type LIMIT 10001) AS e;
    IF v_ready > 10000 THEN
        CALL imq_estimate(IF(v_grouped, 'grouped', 'ready'), p_type, p_now, v_ready);
    END IF;
    IF v_due > 10000 THEN
        CALL imq_estimate('due', p_type, p_now, v_due);
    END IF;
    IF v_delayed > 10000 THEN
        CALL imq_estimate('delayed', p_type, p_now, v_delayed);
    END IF;
    IF v_dead > 10000 THEN
        CALL imq_estimate('dead', p_type, p_now, v_dead);
    END IF;
    SET v_ready = v_ready + v_due;
    SELECT p_type AS type, v_ready AS ready, v_delayed AS `delayed`, v_active AS active, v_expired AS expired, v_dead AS dead,
        GREATEST(TIMESTAMPDIFF(MICROSECOND, v_oldest, p_now), 0) / 1e6 AS oldest_ready_seconds,
        GREATEST(v_ready, v_delayed, v_dead) > 10000 AS estimated, v_paused AS paused;
END
