-- stats_of_all: the rows of queue_stats for all types.
-- Returns:     the columns of queue_stats

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_stats_of_all(IN p_now datetime(6))
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_policies, v_ready, v_grouped, v_delayed, v_batch, v_dead longtext CHARACTER SET utf8mb4;
    DECLARE v_by_group, v_paused tinyint;
    CALL imq_count_types('ready', p_now, v_ready);
    CALL imq_count_types('grouped', p_now, v_grouped);
    CALL imq_count_types('delayed', p_now, v_delayed);
    CALL imq_count_types('batch', p_now, v_batch);
    CALL imq_count_types('dead', p_now, v_dead);
    SELECT grouped, paused INTO v_by_group, v_paused FROM mq_queue WHERE type = '';
    SELECT GROUP_CONCAT('["policy",', JSON_QUOTE(type), ',', grouped, ',', paused, ',null]') INTO v_policies
    FROM mq_queue WHERE type <> '';
    SELECT s.type, s.ready, s.waiting AS `delayed`, s.active, s.expired, s.dead,
        GREATEST(TIMESTAMPDIFF(MICROSECOND, s.oldest, p_now), 0) / 1e6 AS oldest_ready_seconds,
        GREATEST(s.ready, s.waiting, s.dead) > 10000 AS estimated, s.paused
    FROM (
        SELECT g.type, g.due + IF(COALESCE(g.by_group, v_by_group), g.grouped, g.ready) AS ready, g.waiting, g.active,
            g.expired, g.dead,
            COALESCE(IF(COALESCE(g.by_group, v_by_group), g.grouped_at, g.ready_at), g.due_at) AS oldest,
            COALESCE(g.paused, v_paused) AS paused
        FROM (
            -- One sorted list: a join, or a temporary table with an index, takes twice as long.
            SELECT SQL_BIG_RESULT c.type, MAX(IF(c.source = 'policy', c.a, NULL)) AS by_group,
                MAX(IF(c.source = 'policy', c.b, NULL)) AS paused,
                SUM(IF(c.source = 'ready', c.a, 0)) AS ready, MIN(IF(c.source = 'ready', c.at_, NULL)) AS ready_at,
                SUM(IF(c.source = 'grouped', c.a, 0)) AS grouped, MIN(IF(c.source = 'grouped', c.at_, NULL)) AS grouped_at,
                SUM(IF(c.source = 'delayed', c.a, 0)) AS due, MIN(IF(c.source = 'delayed', c.at_, NULL)) AS due_at,
                SUM(IF(c.source = 'delayed', c.b, 0)) AS waiting, SUM(IF(c.source = 'batch', c.a, 0)) AS active,
                SUM(IF(c.source = 'batch', c.b, 0)) AS expired, SUM(IF(c.source = 'dead', c.a, 0)) AS dead
            FROM JSON_TABLE(CONCAT('[', CONCAT_WS(',', v_policies, v_ready, v_grouped, v_delayed, v_batch, v_dead), ']'),
                '$[*]' COLUMNS (
                source varchar(10) CHARACTER SET utf8mb4 PATH '$[0]',
                type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]',
                a bigint PATH '$[2]', b bigint PATH '$[3]', at_ datetime(6) PATH '$[4]')) AS c
            GROUP BY c.type
        ) AS g
    ) AS s
    ORDER BY s.type;
END
