-- stats_of_all: the rows of queue_stats for all types.
-- Arguments:   p_now
-- Returns:     as queue_stats
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_stats_of_all(UTC_TIMESTAMP(6));

DROP PROCEDURE IF EXISTS mq_stats_of_all;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_stats_of_all(
    IN p_now datetime(6)
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_ready, v_grouped, v_delayed, v_batch, v_dead longtext CHARACTER SET utf8mb4;
    DECLARE v_ordered, v_paused tinyint;
    CALL mq_count_types('ready', p_now, v_ready);
    CALL mq_count_types('grouped', p_now, v_grouped);
    CALL mq_count_types('delayed', p_now, v_delayed);
    CALL mq_count_types('batch', p_now, v_batch);
    CALL mq_count_types('dead', p_now, v_dead);
    SELECT ordered, paused INTO v_ordered, v_paused FROM mq_queue WHERE type = '';
    SELECT s.type, LEAST(s.ready, 10000) AS ready, LEAST(s.waiting, 10000) AS `delayed`, LEAST(s.active, 10000) AS active,
        LEAST(s.expired, 10000) AS expired, LEAST(s.dead, 10000) AS dead,
        GREATEST(TIMESTAMPDIFF(MICROSECOND, s.oldest, p_now), 0) / 1e6 AS oldest_ready_seconds,
        GREATEST(s.ready, s.waiting, s.active, s.expired, s.dead) > 10000 AS capped, s.paused
    FROM (
        SELECT c.type, SUM(IF(c.source = IF(COALESCE(q.ordered, v_ordered), 2, 1), c.a, 0)) + SUM(IF(c.source = 3, c.a, 0)) AS ready,
            SUM(IF(c.source = 3, c.b, 0)) AS waiting, SUM(IF(c.source = 4, c.a, 0)) AS active,
            SUM(IF(c.source = 4, c.b, 0)) AS expired, SUM(IF(c.source = 5, c.a, 0)) AS dead,
            COALESCE(MIN(IF(c.source = IF(COALESCE(q.ordered, v_ordered), 2, 1), c.at_, NULL)), MIN(IF(c.source = 3, c.at_, NULL))) AS oldest,
            COALESCE(MAX(q.paused), v_paused) AS paused
        FROM (
            SELECT 0 AS source, CONVERT(type USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ AS type,
                0 AS a, 0 AS b, NULL AS at_ FROM mq_queue WHERE type <> ''
            UNION ALL
            SELECT 1, j.type COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, j.a, j.b, j.at_
            FROM JSON_TABLE(CONCAT('[', COALESCE(v_ready, ''), ']'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                a bigint PATH '$[1]', b bigint PATH '$[2]', at_ datetime(6) PATH '$[3]')) AS j
            UNION ALL
            SELECT 2, j.type COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, j.a, j.b, j.at_
            FROM JSON_TABLE(CONCAT('[', COALESCE(v_grouped, ''), ']'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                a bigint PATH '$[1]', b bigint PATH '$[2]', at_ datetime(6) PATH '$[3]')) AS j
            UNION ALL
            SELECT 3, j.type COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, j.a, j.b, j.at_
            FROM JSON_TABLE(CONCAT('[', COALESCE(v_delayed, ''), ']'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                a bigint PATH '$[1]', b bigint PATH '$[2]', at_ datetime(6) PATH '$[3]')) AS j
            UNION ALL
            SELECT 4, j.type COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, j.a, j.b, j.at_
            FROM JSON_TABLE(CONCAT('[', COALESCE(v_batch, ''), ']'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                a bigint PATH '$[1]', b bigint PATH '$[2]', at_ datetime(6) PATH '$[3]')) AS j
            UNION ALL
            SELECT 5, j.type COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, j.a, j.b, j.at_
            FROM JSON_TABLE(CONCAT('[', COALESCE(v_dead, ''), ']'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                a bigint PATH '$[1]', b bigint PATH '$[2]', at_ datetime(6) PATH '$[3]')) AS j
        ) AS c
        LEFT JOIN mq_queue AS q ON q.type = c.type
        GROUP BY c.type
    ) AS s
    ORDER BY s.type;
END//

DELIMITER ;
