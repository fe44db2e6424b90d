-- find_types: which types of a list seem to have something to claim, and which one will have something first.
-- Arguments:   p_types (a JSON array, from read_types), p_now
-- Returns:     p_ready: a JSON array of [type, time] in the order of the list; NULL: none. The time is when the next delayed
--              message or schedule is due or the next lease expires, or null. p_later: of the types that have nothing now,
--              the one with the earliest such time, as [type, time]; NULL: none
--
-- Paused types are left out. The limits of a type and blocked groups are not checked: claim and check_ready do that. Ready
-- messages are read backward: while a snapshot is open, the deleted rows of finished messages come first. MySQL reads in the
-- order of an index only if ORDER BY names its first column too, unless that is a constant; MariaDB would sort then.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_types(
    IN p_types longtext CHARACTER SET utf8mb4, IN p_now datetime(6), OUT p_ready longtext CHARACTER SET utf8mb4,
    OUT p_later longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_never datetime(6) DEFAULT '9999-12-31';
    DECLARE v_paused tinyint;
    DECLARE v_schedules longtext CHARACTER SET utf8mb4;
    SELECT paused INTO v_paused FROM mq_queue WHERE type = '';
    CALL imq_next_due(p_types, v_schedules);
    SELECT CONCAT('[', GROUP_CONCAT(IF(t.ready, CONCAT('[', t.name, ',', COALESCE(CONCAT('"', t.next_at, '"'), 'null'), ']'), NULL)
            ORDER BY t.n), ']'),
        JSON_EXTRACT(CONCAT('[', GROUP_CONCAT(IF(t.ready OR t.next_at IS NULL, NULL, CONCAT('[', t.name, ',"', t.next_at, '"]'))
            ORDER BY t.next_at, t.n), ']'), '$[0]')
    INTO p_ready, p_later
    FROM (
        SELECT k.n, JSON_QUOTE(k.type) AS name,
            k.has_ready OR COALESCE(k.due_at <= p_now, 0) OR COALESCE(LEAST(k.lease_at, k.schedule_at) <= p_now AND k.scan_at <= p_now, 0) AS ready,
            NULLIF(LEAST(COALESCE(k.due_at, c_never), GREATEST(LEAST(k.lease_at, k.schedule_at), k.scan_at)), c_never) AS next_at
        FROM (
            SELECT p.n, p.type, p.has_ready, p.due_at, COALESCE(p.lease_at, c_never) AS lease_at,
                COALESCE(p.schedule_at, c_never) AS schedule_at,
                -- As in check_ready.
                IF(p.scan_at BETWEEN p_now AND p_now + INTERVAL 6 SECOND, p.scan_at, CAST('1000-01-01' AS datetime(6))) AS scan_at
            FROM (
                SELECT j.n, j.type, s.next_at AS schedule_at, (
                        SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = j.type AND r.attempts >= 0
                        ORDER BY /*!80000 r.type DESC, */ r.priority DESC, r.lane DESC, r.run_at DESC, r.id DESC LIMIT 1
                    ) IS NOT NULL AS has_ready, (
                        SELECT d.run_at FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = j.type ORDER BY /*!80000 d.type, */ d.run_at, d.id
                        LIMIT 1
                    ) AS due_at, (
                        SELECT b.lease_until FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = j.type
                        ORDER BY /*!80000 b.type, */ b.lease_until LIMIT 1
                    ) AS lease_at, (
                        SELECT k.scanned_at + INTERVAL 1 SECOND FROM mq_mark AS k FORCE INDEX (mark_newest) WHERE k.type = j.type
                        ORDER BY /*!80000 k.type DESC, */ k.n DESC LIMIT 1
                    ) AS scan_at
                FROM JSON_TABLE(p_types, '$[*]' COLUMNS (
                    n FOR ORDINALITY,
                    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
                )) AS j
                LEFT JOIN mq_queue AS q FORCE INDEX (PRIMARY) ON q.type = j.type
                LEFT JOIN JSON_TABLE(v_schedules, '$[*]' COLUMNS (
                    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]',
                    next_at datetime(6) PATH '$[1]'
                )) AS s ON s.type = j.type
                WHERE NOT COALESCE(q.paused, v_paused)
                -- All of them. Without a limit MariaDB merges the queries, and runs each subquery once per use of its column.
                LIMIT 1000
            ) AS p
        ) AS k
    ) AS t;
END
