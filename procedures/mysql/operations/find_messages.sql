-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   p_type (1 to 200 characters; NULL: any, allowed only with an id); p_filter, a flat JSON object with id,
--              dedup_key or group_key; p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to p_size messages with the columns of peek that have all values of the filter, ordered by id. Archived
--              messages are found only by id. A group_key finds all due messages of a queue with groups, and other
--              messages among the first 10,000 of their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     CALL mq_find_messages('invoice', '{"group_key": "customer-17"}', NULL, NULL);
--
-- Not from the view message_state, which would read the claims of all types.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_find_messages(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_filter longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_body_length bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 20);
    -- The longest body.
    DECLARE v_length int DEFAULT COALESCE(p_body_length, 16777216);
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_id, v_one bigint;
    DECLARE v_filter, v_dedup_key, v_group_key, v_ids longtext CHARACTER SET utf8mb4;
    -- Keeps the optimizer from merging the list of claims into the outer query, which would read each list per message.
    DECLARE v_cap bigint DEFAULT 9223372036854775807;
    DECLARE v_tickets tinyint DEFAULT 0;
    -- Without a transaction: it restores what read_options has set in the session.
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(NULL);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 1);
    CALL imq_read_options(p_filter, 'filter',
        '{"id": [-9223372036854775808, 9223372036854775807], "dedup_key": "text", "group_key": "text"}', NULL, v_filter);
    SELECT j.id, j.dedup_key, j.group_key INTO v_id, v_dedup_key, v_group_key
    FROM JSON_TABLE(v_filter, '$' COLUMNS (id bigint PATH '$.id', dedup_key longtext CHARACTER SET utf8mb4 PATH '$.dedup_key',
        group_key longtext CHARACTER SET utf8mb4 PATH '$.group_key')) AS j;
    SET v_one = v_id;
    CALL imq_require_name('dedup_key', v_dedup_key, 1);
    CALL imq_require_name('group_key', v_group_key, 1);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_range('body_length', p_body_length, 0, 16777216);
    SET v_type = p_type;
    IF v_id IS NOT NULL THEN
        SELECT MAX(m.type) INTO v_type FROM mq_message AS m FORCE INDEX (PRIMARY) WHERE m.id = v_id;
    ELSEIF p_type IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'type: must not be NULL unless the filter has an id');
    ELSEIF v_dedup_key IS NOT NULL THEN
        SELECT MAX(k.id) INTO v_one FROM mq_dedup AS k FORCE INDEX (PRIMARY) WHERE k.type = p_type AND k.dedup_key = v_dedup_key;
    ELSEIF v_group_key IS NOT NULL THEN
        CALL imq_ids_of_group(p_type, v_group_key, v_size, v_ids);
        -- The same number of rows as searched in these tables. A message claimed beyond them has at most a ticket.
        SET v_cap = 10000;
        SELECT grouped INTO v_tickets FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    ELSE
        CALL imq_raise_error('invalid_argument', 'filter: must have an id, a dedup_key or a group_key');
    END IF;
    SET v_ids = COALESCE(v_ids, CONCAT('[', v_one, ']'), '[]');
    SELECT f.id, f.type, f.state, f.body, f.headers, f.priority, f.group_key, f.dedup_key, f.attempts, f.created_at, f.source,
        IF(f.state = 'N', f.run_at, NULL) AS run_at, f.consumer, f.batch_key, f.lease_until, f.changed_at, f.error
    FROM (
        SELECT m.id, m.type,
            CASE
                WHEN a.id IS NOT NULL THEN 'A'
                WHEN e.id IS NOT NULL THEN 'E'
                WHEN COALESCE(d.id, g.id, r.id, l.id, o.id) IS NOT NULL THEN 'N'
            END AS state,
            LEFT(m.body, v_length) AS body, m.headers, m.priority, m.group_key, m.dedup_key,
            COALESCE(a.attempt, e.attempts, d.attempts, g.attempts, r.attempts, l.attempts, o.attempts) AS attempts, m.created_at, m.source,
            IF(g.id IS NULL, m.run_at, COALESCE(m.sent_run_at, m.run_at)) AS run_at, COALESCE(a.consumer, e.consumer) AS consumer,
            a.batch_key, a.lease_until, COALESCE(a.claimed_at, e.died_at) AS changed_at,
            COALESCE(e.error, d.error, IF(m.cancelled_at IS NULL, NULL, 'cancelled')) AS error
        FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        LEFT JOIN (
            SELECT i.id, i.attempt, b.consumer, b.batch_key, b.lease_until, b.claimed_at
            FROM mq_batch AS b FORCE INDEX (batch_lease)
            STRAIGHT_JOIN JSON_TABLE(b.items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt smallint PATH '$[1]')) AS i
            -- A search for one message parses only the list that contains it; comparing bytes is ten times as fast.
            WHERE b.type = v_type
                AND (v_one IS NULL OR LOCATE(CAST(CONCAT('[', v_one, ',') AS binary), CAST(b.items AS binary)) > 0)
            ORDER BY b.lease_until LIMIT v_cap
        ) AS a ON a.id = m.id
        LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = m.id
        LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
            ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
        LEFT JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = m.type AND r.priority = m.priority AND r.lane = '' AND r.run_at = m.run_at AND r.id = m.id AND NOT v_tickets
        -- Its lane in a fair queue.
        LEFT JOIN mq_ready AS l FORCE INDEX (PRIMARY)
            ON l.type = m.type AND l.priority = m.priority AND l.lane = COALESCE(m.group_key, '') AND l.run_at = '1000-01-01' AND l.id = m.id
            AND NOT v_tickets
        -- The position of a message in a queue that is claimed round-robin.
        LEFT JOIN mq_ready AS o FORCE INDEX (PRIMARY)
            ON o.type = m.type AND o.priority = -32768 AND o.lane = '' AND o.run_at = '1000-01-01' AND o.id = m.id
        UNION ALL
        SELECT c.id, c.type, 'C', LEFT(c.body, v_length), c.headers, c.priority,
            c.group_key COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
            c.dedup_key COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
            c.attempts, c.created_at, c.source, NULL, c.consumer, NULL, NULL, c.completed_at, NULL
        FROM mq_archive AS c FORCE INDEX (PRIMARY)
        WHERE c.id = v_id
    ) AS f
    WHERE (p_type IS NULL OR f.type = p_type) AND (v_dedup_key IS NULL OR f.dedup_key = v_dedup_key)
        AND (v_group_key IS NULL OR f.group_key = v_group_key AND f.state IS NOT NULL)
    ORDER BY f.id LIMIT v_size;
    CALL imq_undo_call(NULL);
END
