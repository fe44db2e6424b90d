-- fail_messages: record failed attempts: retry each message after a delay, or dead-letter it when its attempts are used up.
--     One that was cancelled is deleted.
-- Arguments:   p_type, p_consumer, p_failed (a JSON array of [id, number of this attempt, seconds to the retry, error];
--              seconds null: the policy's backoff, -1: dead-letter it now; error may be null)
-- Returns:     p_dead: number of new dead letters

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_fail_messages(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_failed longtext CHARACTER SET utf8mb4, OUT p_dead bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_max_attempts, v_backoff, v_backoff_max int;
    DECLARE v_ordered, v_grouped, v_stops tinyint;
    DECLARE v_dead longtext CHARACTER SET utf8mb4;
    CALL imq_drop_cancelled(p_type, p_failed);
    SELECT max_attempts, backoff_seconds, backoff_max_seconds, ordered, grouped
    INTO v_max_attempts, v_backoff, v_backoff_max, v_ordered, v_grouped
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;

    INSERT INTO mq_dead (id, died_at, attempts, type, consumer, error)
    SELECT m.id, v_now, j.attempt, p_type, p_consumer, LEFT(j.error, 4000)
    FROM JSON_TABLE(p_failed, '$[*]' COLUMNS (
        id bigint PATH '$[0]', attempt int PATH '$[1]', retry bigint PATH '$[2]',
        error longtext CHARACTER SET utf8mb4 PATH '$[3]'
    )) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    WHERE COALESCE(j.retry, 0) = -1 OR j.attempt >= COALESCE(m.max_attempts, v_max_attempts);
    SET p_dead = ROW_COUNT();
    IF p_dead > 0 AND v_ordered THEN
        -- The lock keeps set_queue waiting: it sees these dead letters, or this call sees its change.
        SELECT dead_stops_group INTO v_stops FROM mq_queue WHERE type = p_type LOCK IN SHARE MODE;
        SELECT CONCAT('[', GROUP_CONCAT('[', d.id, ']'), ']') INTO v_dead
        FROM JSON_TABLE(p_failed, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_dead AS d FORCE INDEX (PRIMARY) ON d.id = j.id
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = d.id
        WHERE NOT v_stops OR m.group_key IS NULL;
        IF v_dead IS NOT NULL THEN
            CALL imq_free_groups(p_type, v_dead);
        END IF;
    END IF;
    IF p_dead < JSON_LENGTH(p_failed) THEN
        UPDATE JSON_TABLE(p_failed, '$[*]' COLUMNS (
            id bigint PATH '$[0]', attempt int PATH '$[1]', retry bigint PATH '$[2]'
        )) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        -- Random jitter, half to all of the backoff: messages that failed together are retried at different times.
        SET m.sent_run_at = COALESCE(m.sent_run_at, m.run_at),
            m.run_at = v_now + INTERVAL COALESCE(j.retry * 1000000, ROUND(LEAST(
            v_backoff_max, v_backoff * POW(2, LEAST(j.attempt - 1, 40))
        ) * (0.5 + RAND() / 2) * 1000000)) MICROSECOND
        WHERE COALESCE(j.retry, 0) <> -1 AND j.attempt < COALESCE(m.max_attempts, v_max_attempts);
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts, error)
        SELECT m.type, m.run_at, m.id, m.priority, j.attempt, LEFT(j.error, 4000)
        FROM JSON_TABLE(p_failed, '$[*]' COLUMNS (
            id bigint PATH '$[0]', attempt int PATH '$[1]', retry bigint PATH '$[2]',
            error longtext CHARACTER SET utf8mb4 PATH '$[3]'
        )) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        WHERE COALESCE(j.retry, 0) <> -1 AND j.attempt < COALESCE(m.max_attempts, v_max_attempts);
    END IF;
    IF v_grouped AND NOT v_ordered THEN
        -- In a queue without order a failed message does not block its group.
        CALL imq_free_groups(p_type, p_failed);
    END IF;
END
