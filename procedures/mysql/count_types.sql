-- count_types: how many rows one of the queue's tables has of each type.
-- Arguments:   p_source (ready, grouped, delayed, batch or dead), p_now
-- Returns:     p_counts: '[type,a,b,oldest],...', NULL for none; a and b: of delayed what is due and what is not, of batch active and
--              expired messages, else a is all
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_count_types('ready', UTC_TIMESTAMP(6), v_counts);
--
-- In parts of c_rows rows, so that of a type with more no more than one part is read, and of a hundred thousand types with a few
-- messages each many with one statement. ASC, because it is no parameter that the column equals: MariaDB takes the index's order here.

DROP PROCEDURE IF EXISTS mq_count_types;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_count_types(
    IN p_source varchar(10) CHARACTER SET ascii,
    IN p_now datetime(6),
    OUT p_counts longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE c_rows int DEFAULT 20000;
    DECLARE v_after, v_last, v_before varchar(200) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_read bigint;
    SET p_counts = NULL;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    parts: LOOP
        IF p_source = 'ready' THEN
            SELECT CONCAT_WS(',', p_counts, GROUP_CONCAT(IF(g.type < g.last_type OR g.read_ < c_rows OR g.types = 1,
                CONCAT('[', JSON_QUOTE(g.type), ',', g.a, ',', g.b, ',', COALESCE(CONCAT('"', g.at_, '"'), 'null'), ']'), NULL))),
                MAX(g.read_), MAX(g.last_type), MAX(IF(g.type < g.last_type, g.type, NULL))
            INTO p_counts, v_read, v_last, v_before
            FROM (
                SELECT x.type, SUM(x.a) AS a, SUM(x.b) AS b, MIN(x.at_) AS at_, MAX(x.type) OVER () AS last_type, SUM(COUNT(*)) OVER () AS read_,
                    COUNT(*) OVER () AS types
                FROM (
                    SELECT r.type, 1 AS a, 0 AS b, CASE WHEN r.run_at > '1000-01-01' THEN r.run_at ELSE (SELECT m.run_at FROM mq_message AS m WHERE m.id = r.id) END AS at_
                    FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.attempts >= 0 ORDER BY r.type ASC, r.priority, r.run_at, r.id
                    LIMIT c_rows
                ) AS x
                GROUP BY x.type
            ) AS g;
        ELSEIF p_source = 'grouped' THEN
            SELECT CONCAT_WS(',', p_counts, GROUP_CONCAT(IF(g.type < g.last_type OR g.read_ < c_rows OR g.types = 1,
                CONCAT('[', JSON_QUOTE(g.type), ',', g.a, ',', g.b, ',', COALESCE(CONCAT('"', g.at_, '"'), 'null'), ']'), NULL))),
                MAX(g.read_), MAX(g.last_type), MAX(IF(g.type < g.last_type, g.type, NULL))
            INTO p_counts, v_read, v_last, v_before
            FROM (
                SELECT x.type, SUM(x.a) AS a, SUM(x.b) AS b, MIN(x.at_) AS at_, MAX(x.type) OVER () AS last_type, SUM(COUNT(*)) OVER () AS read_,
                    COUNT(*) OVER () AS types
                FROM (
                    SELECT r.type, 1 AS a, 0 AS b, (SELECT m.run_at FROM mq_message AS m WHERE m.id = r.id) AS at_
                    FROM mq_grouped AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.attempts >= 0 ORDER BY r.type ASC, r.group_key, r.id
                    LIMIT c_rows
                ) AS x
                GROUP BY x.type
            ) AS g;
        ELSEIF p_source = 'delayed' THEN
            SELECT CONCAT_WS(',', p_counts, GROUP_CONCAT(IF(g.type < g.last_type OR g.read_ < c_rows OR g.types = 1,
                CONCAT('[', JSON_QUOTE(g.type), ',', g.a, ',', g.b, ',', COALESCE(CONCAT('"', g.at_, '"'), 'null'), ']'), NULL))),
                MAX(g.read_), MAX(g.last_type), MAX(IF(g.type < g.last_type, g.type, NULL))
            INTO p_counts, v_read, v_last, v_before
            FROM (
                SELECT x.type, SUM(x.a) AS a, SUM(x.b) AS b, MIN(x.at_) AS at_, MAX(x.type) OVER () AS last_type, SUM(COUNT(*)) OVER () AS read_,
                    COUNT(*) OVER () AS types
                FROM (
                    SELECT r.type, r.run_at <= p_now AS a, r.run_at > p_now AS b, IF(r.run_at <= p_now, r.run_at, NULL) AS at_
                    FROM mq_delayed AS r FORCE INDEX (PRIMARY) WHERE r.type > v_after AND r.attempts >= 0 ORDER BY r.type ASC, r.run_at, r.id
                    LIMIT c_rows
                ) AS x
                GROUP BY x.type
            ) AS g;
        ELSEIF p_source = 'batch' THEN
            SELECT CONCAT_WS(',', p_counts, GROUP_CONCAT(IF(g.type < g.last_type OR g.read_ < c_rows OR g.types = 1,
                CONCAT('[', JSON_QUOTE(g.type), ',', g.a, ',', g.b, ',', COALESCE(CONCAT('"', g.at_, '"'), 'null'), ']'), NULL))),
                MAX(g.read_), MAX(g.last_type), MAX(IF(g.type < g.last_type, g.type, NULL))
            INTO p_counts, v_read, v_last, v_before
            FROM (
                SELECT x.type, SUM(x.a) AS a, SUM(x.b) AS b, MIN(x.at_) AS at_, MAX(x.type) OVER () AS last_type, SUM(COUNT(*)) OVER () AS read_,
                    COUNT(*) OVER () AS types
                FROM (
                    SELECT r.type, IF(r.lease_until > p_now, JSON_LENGTH(r.items), 0) AS a, IF(r.lease_until > p_now, 0, JSON_LENGTH(r.items)) AS b, NULL AS at_
                    FROM mq_batch AS r FORCE INDEX (batch_lease) WHERE r.type > v_after AND r.lease_seconds >= 0 ORDER BY r.type ASC, r.lease_until
                    LIMIT c_rows
                ) AS x
                GROUP BY x.type
            ) AS g;
        ELSEIF p_source = 'dead' THEN
            SELECT CONCAT_WS(',', p_counts, GROUP_CONCAT(IF(g.type < g.last_type OR g.read_ < c_rows OR g.types = 1,
                CONCAT('[', JSON_QUOTE(g.type), ',', g.a, ',', g.b, ',', COALESCE(CONCAT('"', g.at_, '"'), 'null'), ']'), NULL))),
                MAX(g.read_), MAX(g.last_type), MAX(IF(g.type < g.last_type, g.type, NULL))
            INTO p_counts, v_read, v_last, v_before
            FROM (
                SELECT x.type, SUM(x.a) AS a, SUM(x.b) AS b, MIN(x.at_) AS at_, MAX(x.type) OVER () AS last_type, SUM(COUNT(*)) OVER () AS read_,
                    COUNT(*) OVER () AS types
                FROM (
                    SELECT r.type, 1 AS a, 0 AS b, NULL AS at_
                    FROM mq_dead AS r FORCE INDEX (dead_age) WHERE r.type > v_after AND r.attempts >= 0 ORDER BY r.type ASC, r.died_at, r.id
                    LIMIT c_rows
                ) AS x
                GROUP BY x.type
            ) AS g;
        END IF;
        IF COALESCE(v_read, 0) < c_rows THEN
            LEAVE parts;
        END IF;
        -- The last type of a part may go on in the next one.
        SET v_after = COALESCE(v_before, v_last);
    END LOOP;
    SET p_counts = NULLIF(p_counts, '');
END//

DELIMITER ;
