-- settle_rows: record failed attempts: each entry waits for its next attempt, or is dead when no attempt is left.
-- Arguments:   p_batch_key (of a claim, which may already be ended), p_items (a JSON array of [id, retry, error, refused];
--              retry: seconds, null: 5 doubled for each attempt up to 3,600, -1: dead now, -2: given back without counting
--              an attempt; refused: the error when the new status could not be written), p_gone (a JSON array of the entries
--              whose rows are gone), p_rest (1: the other rows of the batch are done)
-- Returns:     p_failed, p_dead, p_gone_count

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_settle_rows(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    IN p_gone longtext CHARACTER SET utf8mb4, IN p_rest tinyint, OUT p_failed bigint, OUT p_dead bigint,
    OUT p_gone_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_max int;
    DECLARE v_rest longtext CHARACTER SET utf8mb4;
    SET p_gone_count = 0, p_failed = 0, p_dead = 0;
    IF p_gone IS NOT NULL THEN
        DELETE e FROM JSON_TABLE(p_gone, '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        WHERE e.batch_key = p_batch_key;
        SET p_gone_count = ROW_COUNT();
    END IF;
    IF p_items IS NOT NULL THEN
        SELECT MAX(p.max_attempts) INTO v_max
        FROM mq_polled_row AS e JOIN mq_polled AS p ON p.name = e.name WHERE e.batch_key = p_batch_key;
        SELECT COUNT(*), COALESCE(SUM(j.refused IS NULL AND (j.retry <=> -1 OR e.attempts >= v_max AND NOT j.retry <=> -2)), 0)
        INTO p_failed, p_dead
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[1]',
            refused longtext CHARACTER SET utf8mb4 PATH '$[3]')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        WHERE e.batch_key = p_batch_key;
        SET p_failed = p_failed - p_dead;
        -- Jitter: half to all of the delay. Rows that failed together are then not retried together. When the table refuses
        -- error_value, the entry waits and the row dies at a later try: without an entry the row would be claimed as new.
        -- An UPDATE of several tables computes every column from the old row, so run_at repeats the condition of state.
        UPDATE JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[1]',
            error longtext CHARACTER SET utf8mb4 PATH '$[2]', refused longtext CHARACTER SET utf8mb4 PATH '$[3]')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        SET e.state = IF(j.refused IS NULL AND (j.retry <=> -1 OR e.attempts >= v_max AND NOT j.retry <=> -2), 'E', 'N'),
            e.run_at = IF(j.refused IS NULL AND (j.retry <=> -1 OR e.attempts >= v_max AND NOT j.retry <=> -2), v_now,
                v_now + INTERVAL CAST(1000000 * COALESCE(IF(j.retry = -2, 0, IF(j.retry >= 0, j.retry, NULL)),
                    LEAST(3600, 5 * POW(2, LEAST(GREATEST(e.attempts - 1, 0), 40))) * (0.5 + RAND() / 2)) AS signed) MICROSECOND),
            e.attempts = GREATEST(e.attempts - IF(j.retry = -2, 1, 0), 0),
            e.active = e.active AND j.refused IS NOT NULL,
            e.error = LEFT(COALESCE(j.refused, IF(j.retry = -2, e.error, j.error)), 4000),
            e.batch_key = NULL
        WHERE e.batch_key = p_batch_key;
    END IF;
    IF p_rest THEN
        SELECT CONCAT('[', GROUP_CONCAT(id ORDER BY id), ']') INTO v_rest FROM mq_polled_row WHERE batch_key = p_batch_key;
        DELETE e FROM JSON_TABLE(COALESCE(v_rest, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
    END IF;
END
