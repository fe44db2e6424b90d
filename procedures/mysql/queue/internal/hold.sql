-- hold: store picked messages as a batch with a new batch key and a lease, and return them.
-- Arguments:   p_type, p_items (a JSON array of [id, attempt]), p_consumer, p_lease_seconds, p_max_attempts (of the queue)
-- Returns:     the messages, in the order of p_items

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_hold(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_lease_seconds int, IN p_max_attempts int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_until datetime(6) DEFAULT v_now + INTERVAL p_lease_seconds SECOND;
    -- UUID() is a clock and a counter that every session sees: a batch key needs random bytes. MariaDB before 10.10 has none:
    -- there the session's random numbers are all that a stranger does not know.
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4 DEFAULT INSERT(INSERT(INSERT(INSERT(LEFT(LOWER(COALESCE(
        /*!80000 HEX(RANDOM_BYTES(16)), */ /*M!101001 HEX(RANDOM_BYTES(16)), */ SHA2(CONCAT(UUID(), RAND(), RAND()), 256)
        )), 32), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-');
    -- No JSON_TABLE for a single message: see delete_messages.
    DECLARE v_one bigint DEFAULT IF(JSON_LENGTH(p_items) = 1, JSON_EXTRACT(p_items, '$[0][0]'), NULL);
    DECLARE v_attempt int DEFAULT JSON_EXTRACT(p_items, '$[0][1]');
    INSERT INTO mq_batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer, items)
    VALUES (v_key, v_now, v_until, p_lease_seconds, p_type, p_consumer, p_items);
    IF v_one IS NULL THEN
        SELECT m.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, j.attempt, m.created_at, m.source,
            v_key AS batch_key, v_until AS lease_until, COALESCE(m.max_attempts, p_max_attempts) AS max_attempts,
            COALESCE(m.sent_run_at, m.run_at) AS run_at, CAST(NULL AS char) AS extra
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (n FOR ORDINALITY, id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        ORDER BY j.n;
    ELSE
        SELECT m.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, v_attempt AS attempt, m.created_at, m.source,
            v_key AS batch_key, v_until AS lease_until, COALESCE(m.max_attempts, p_max_attempts) AS max_attempts,
            COALESCE(m.sent_run_at, m.run_at) AS run_at, CAST(NULL AS char) AS extra
        FROM mq_message AS m FORCE INDEX (PRIMARY) WHERE m.id = v_one;
    END IF;
END
