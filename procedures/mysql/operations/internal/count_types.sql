-- count_types: count the messages of each type in one of the queue's tables; above 10,000 by an estimate.
-- Arguments:   p_source (ready, grouped, delayed, batch or dead), p_now
-- Returns:     p_counts: '[source,type,a,b,oldest],...', NULL: none; a and b: for delayed due and not due, for batch
--              active and expired messages; else a is the count
--
-- It reads the index in parts of c_rows rows, so one statement counts many types with few messages each. A type that
-- fills a whole part is estimated, but claims are counted: consumers hold only so many messages. Nothing is sorted. The
-- type is compared by a range here, so ORDER BY contains it, written as type ASC: where it equals a parameter, MariaDB
-- 10.11 would sort.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_count_types(
    IN p_source varchar(10) CHARACTER SET utf8mb4, IN p_now datetime(6), OUT p_counts longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE c_rows int DEFAULT 10000;
    -- No type sorts after it.
    DECLARE v_end varchar(201) CHARACTER SET utf8mb4 DEFAULT REPEAT(CONVERT(x'F48FBFBF' USING utf8mb4), 201);
    DECLARE v_until varchar(201) CHARACTER SET utf8mb4;
    DECLARE v_after, v_before varchar(200) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_part longtext CHARACTER SET utf8mb4;
    DECLARE v_estimate, v_due, v_ahead bigint;
    DECLARE v_oldest datetime(6);
    -- Fewer rows than a part are left.
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SET p_counts = NULL;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    parts: LOOP
        SET v_until = v_end;
        IF p_source = 'ready' THEN
            SELECT r.type INTO v_until FROM mq_ready AS r FORCE INDEX (PRIMARY)
            WHERE r.type > v_after ORDER BY r.type ASC, r.priority, r.lane, r.run_at, r.id LIMIT c_rows, 1;
            SELECT GROUP_CONCAT('["', p_source, '",', JSON_QUOTE(x.type), ',', x.a, ',', x.b, ',',
                COALESCE(CONCAT('"', x.at_, '"'), 'null'), ']'), MAX(x.type)
            INTO v_part, v_before
            FROM (
                SELECT r.type, SUM(1) AS a, SUM(0) AS b, MIN(CASE WHEN r.run_at > '1000-01-01' THEN r.run_at
                    ELSE (SELECT m.run_at FROM mq_message AS m WHERE m.id = r.id) END) AS at_
                FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.type < v_until AND r.attempts >= 0
                GROUP BY r.type
            ) AS x;
            IF v_before IS NULL AND v_until <> v_end THEN
                CALL imq_estimate('ready', v_until, p_now, v_estimate);
                SELECT CONCAT('["', p_source, '",', JSON_QUOTE(v_until), ',', v_estimate, ',0,"', m.run_at, '"]') INTO v_part
                FROM (SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
                    WHERE type = v_until ORDER BY priority, lane, run_at, id LIMIT 1) AS r
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id;
            END IF;
        ELSEIF p_source = 'grouped' THEN
            SELECT r.type INTO v_until FROM mq_grouped AS r FORCE INDEX (PRIMARY)
            WHERE r.type > v_after ORDER BY r.type ASC, r.group_key, r.id LIMIT c_rows, 1;
            SELECT GROUP_CONCAT('["', p_source, '",', JSON_QUOTE(x.type), ',', x.a, ',', x.b, ',',
                COALESCE(CONCAT('"', x.at_, '"'), 'null'), ']'), MAX(x.type)
            INTO v_part, v_before
            FROM (
                SELECT r.type, SUM(1) AS a, SUM(0) AS b, MIN((SELECT m.run_at FROM mq_message AS m WHERE m.id = r.id)) AS at_
                FROM mq_grouped AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.type < v_until AND r.attempts >= 0
                GROUP BY r.type
            ) AS x;
            IF v_before IS NULL AND v_until <> v_end THEN
                CALL imq_estimate('grouped', v_until, p_now, v_estimate);
                SELECT CONCAT('["', p_source, '",', JSON_QUOTE(v_until), ',', v_estimate, ',0,"', MIN(m.run_at), '"]') INTO v_part
                FROM (SELECT id FROM mq_grouped FORCE INDEX (PRIMARY) WHERE type = v_until LIMIT 10001) AS r
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id;
            END IF;
        ELSEIF p_source = 'delayed' THEN
            SELECT r.type INTO v_until FROM mq_delayed AS r FORCE INDEX (PRIMARY)
            WHERE r.type > v_after ORDER BY r.type ASC, r.run_at, r.id LIMIT c_rows, 1;
            SELECT GROUP_CONCAT('["', p_source, '",', JSON_QUOTE(x.type), ',', x.a, ',', x.b, ',',
                COALESCE(CONCAT('"', x.at_, '"'), 'null'), ']'), MAX(x.type)
            INTO v_part, v_before
            FROM (
                SELECT r.type, SUM(r.run_at <= p_now) AS a, SUM(r.run_at > p_now) AS b,
                    MIN(IF(r.run_at <= p_now, r.run_at, NULL)) AS at_
                FROM mq_delayed AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.type < v_until AND r.attempts >= 0
                GROUP BY r.type
            ) AS x;
            IF v_before IS NULL AND v_until <> v_end THEN
                SELECT COUNT(*), MIN(r.run_at) INTO v_due, v_oldest
                FROM (SELECT run_at FROM mq_delayed FORCE INDEX (PRIMARY)
                    WHERE type = v_until AND run_at <= p_now AND attempts >= 0 ORDER BY run_at, id LIMIT 10001) AS r;
                SELECT COUNT(*) INTO v_ahead
                FROM (SELECT 1 FROM mq_delayed FORCE INDEX (PRIMARY)
                    WHERE type = v_until AND run_at > p_now AND attempts >= 0 LIMIT 10001) AS r;
                IF v_due > c_rows THEN
                    CALL imq_estimate('due', v_until, p_now, v_due);
                END IF;
                IF v_ahead > c_rows THEN
                    CALL imq_estimate('delayed', v_until, p_now, v_ahead);
                END IF;
                SET v_part = CONCAT('["', p_source, '",', JSON_QUOTE(v_until), ',', v_due, ',', v_ahead, ',',
                    COALESCE(CONCAT('"', v_oldest, '"'), 'null'), ']');
            END IF;
        ELSEIF p_source = 'batch' THEN
            SELECT r.type INTO v_until FROM mq_batch AS r FORCE INDEX (batch_lease)
            WHERE r.type > v_after ORDER BY r.type ASC, r.lease_until LIMIT c_rows, 1;
            SELECT GROUP_CONCAT('["', p_source, '",', JSON_QUOTE(x.type), ',', x.a, ',', x.b, ',',
                COALESCE(CONCAT('"', x.at_, '"'), 'null'), ']'), MAX(x.type)
            INTO v_part, v_before
            FROM (
                SELECT r.type, SUM(IF(r.lease_until > p_now, JSON_LENGTH(r.items), 0)) AS a,
                    SUM(IF(r.lease_until > p_now, 0, JSON_LENGTH(r.items))) AS b, MIN(NULL) AS at_
                FROM mq_batch AS r FORCE INDEX (batch_lease) WHERE r.type > v_after AND r.type < v_until AND r.lease_seconds >= 0
                GROUP BY r.type
            ) AS x;
            IF v_before IS NULL AND v_until <> v_end THEN
                SELECT CONCAT('["', p_source, '",', JSON_QUOTE(v_until), ',', SUM(IF(r.lease_until > p_now, r.n, 0)), ',',
                    SUM(IF(r.lease_until > p_now, 0, r.n)), ',null]') INTO v_part
                FROM (SELECT lease_until, JSON_LENGTH(items) AS n FROM mq_batch FORCE INDEX (batch_lease)
                    WHERE type = v_until) AS r;
            END IF;
        ELSEIF p_source = 'dead' THEN
            SELECT r.type INTO v_until FROM mq_dead AS r FORCE INDEX (dead_age)
            WHERE r.type > v_after ORDER BY r.type ASC, r.died_at, r.id LIMIT c_rows, 1;
            SELECT GROUP_CONCAT('["', p_source, '",', JSON_QUOTE(x.type), ',', x.a, ',', x.b, ',',
                COALESCE(CONCAT('"', x.at_, '"'), 'null'), ']'), MAX(x.type)
            INTO v_part, v_before
            FROM (
                SELECT r.type, SUM(1) AS a, SUM(0) AS b, MIN(NULL) AS at_
                FROM mq_dead AS r FORCE INDEX (dead_age) WHERE r.type > v_after AND r.type < v_until AND r.attempts >= 0
                GROUP BY r.type
            ) AS x;
            IF v_before IS NULL AND v_until <> v_end THEN
                CALL imq_estimate('dead', v_until, p_now, v_estimate);
                SET v_part = CONCAT('["', p_source, '",', JSON_QUOTE(v_until), ',', v_estimate, ',0,null]');
            END IF;
        END IF;
        -- Not inside the statements above: with window functions there, MariaDB 11.8 ran for minutes.
        SET p_counts = NULLIF(CONCAT_WS(',', p_counts, v_part), '');
        IF v_until = v_end THEN
            LEAVE parts;
        END IF;
        -- The next part counts the last type of this part again from its start.
        SET v_after = COALESCE(v_before, v_until);
    END LOOP;
END
