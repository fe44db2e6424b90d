-- peek: list messages without claiming them.
-- Arguments:   p_type (1 to 200 characters), p_state (N: in claim order, ready before delayed; A; E and C: the newest
--              first; NULL: N), p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to 16,777,216;
--              NULL: all)
-- Returns:     up to p_size messages with their state, consumer, times and error
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     CALL mq_peek('email', 'E', 20, 200);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_peek(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_state longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_body_length bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 20);
    -- The longest body.
    DECLARE v_length int DEFAULT COALESCE(p_body_length, 16777216);
    DECLARE v_grouped tinyint;
    CALL imq_require_name('type', p_type, 0);
    -- Compared as bytes: a collation may equate 'n' with N.
    IF CAST(p_state AS binary) NOT IN ('N', 'A', 'E', 'C') THEN
        CALL imq_raise_error('invalid_argument', 'state: must be N, A, E or C');
    END IF;
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_range('body_length', p_body_length, 0, 16777216);
    IF p_state = 'A' THEN
        SELECT m.id, m.type, 'A' AS state, LEFT(m.body, v_length) AS body, m.headers, m.priority, m.group_key, m.dedup_key,
            t.attempt AS attempts, m.created_at, m.source, CAST(NULL AS datetime(6)) AS run_at, t.consumer, t.batch_key, t.lease_until,
            t.claimed_at AS changed_at, IF(m.cancelled_at IS NULL, NULL, 'cancelled') AS error
        FROM (
            SELECT b.batch_key, b.consumer, b.claimed_at, b.lease_until, j.n, j.id, j.attempt
            FROM (SELECT * FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type ORDER BY lease_until LIMIT v_size) AS b
            CROSS JOIN JSON_TABLE(b.items, '$[*]' COLUMNS (n FOR ORDINALITY, id bigint PATH '$[0]',
                attempt smallint PATH '$[1]')) AS j
            ORDER BY b.lease_until, b.batch_key, j.n LIMIT v_size
        ) AS t
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = t.id
        ORDER BY t.lease_until, t.batch_key, t.n;
    ELSEIF p_state = 'E' THEN
        SELECT m.id, m.type, 'E' AS state, LEFT(m.body, v_length) AS body, m.headers, m.priority, m.group_key, m.dedup_key,
            e.attempts, m.created_at, m.source, CAST(NULL AS datetime(6)) AS run_at, e.consumer, CAST(NULL AS char(36)) AS batch_key,
            CAST(NULL AS datetime(6)) AS lease_until, e.died_at AS changed_at, e.error
        FROM mq_dead AS e FORCE INDEX (dead_age)
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = e.id
        WHERE e.type = p_type
        ORDER BY e.died_at DESC, e.id DESC LIMIT v_size;
    ELSEIF p_state = 'C' THEN
        SELECT c.id, c.type, 'C' AS state, LEFT(c.body, v_length) AS body, c.headers, c.priority, c.group_key, c.dedup_key,
            c.attempts, c.created_at, c.source, CAST(NULL AS datetime(6)) AS run_at, c.consumer, CAST(NULL AS char(36)) AS batch_key,
            CAST(NULL AS datetime(6)) AS lease_until, c.completed_at AS changed_at, CAST(NULL AS char) AS error
        FROM mq_archive AS c FORCE INDEX (archive_type)
        WHERE c.type = p_type
        ORDER BY c.completed_at DESC, c.id DESC LIMIT v_size;
    ELSE
        SELECT grouped INTO v_grouped FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
        SELECT m.id, m.type, 'N' AS state, LEFT(m.body, v_length) AS body, m.headers, m.priority, m.group_key, m.dedup_key,
            t.attempts, m.created_at, m.source, m.run_at, CAST(NULL AS char) AS consumer, CAST(NULL AS char(36)) AS batch_key,
            CAST(NULL AS datetime(6)) AS lease_until, CAST(NULL AS datetime(6)) AS changed_at, t.error
        FROM (
            (SELECT 1 AS part, '' AS group_key, priority, lane, run_at, id, attempts, NULL AS error
            FROM mq_ready FORCE INDEX (PRIMARY)
            -- In a queue with groups these rows are tickets.
            WHERE type = p_type AND NOT v_grouped
            ORDER BY priority, lane, run_at, id
            LIMIT v_size)
            UNION ALL
            (SELECT 2, group_key, 0, '', NULL, id, attempts, NULL
            FROM mq_grouped FORCE INDEX (PRIMARY)
            WHERE type = p_type
            ORDER BY group_key, id
            LIMIT v_size)
            UNION ALL
            (SELECT 3, '', 0, '', run_at, id, attempts, error
            FROM mq_delayed FORCE INDEX (PRIMARY)
            WHERE type = p_type
            ORDER BY run_at, id
            LIMIT v_size)
        ) AS t
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = t.id
        ORDER BY t.part, t.group_key, t.priority, t.lane, t.run_at, t.id LIMIT v_size;
    END IF;
END
