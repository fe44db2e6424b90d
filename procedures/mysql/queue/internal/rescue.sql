-- rescue: rescue up to p_batches expired claims of a type: make their messages ready again, or dead-letter them when their
--         attempts are used up.
-- Arguments:   p_type, p_batches (maximum number of claims)
-- Returns:     p_count: how many messages were made ready or dead-lettered
-- Transaction: joins the caller's; skips claims that another call is finishing or extending

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_rescue(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_batches int, OUT p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_max_attempts int;
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4;
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items, v_left, v_spent longtext CHARACTER SET utf8mb4;
    DECLARE v_held longtext CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_dead, v_free bigint;
    SELECT max_attempts INTO v_max_attempts FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    SET p_count = 0;
    rescue: WHILE p_batches > 0 DO
        SET v_key = NULL;
        SELECT batch_key, consumer, items INTO v_key, v_consumer, v_items
        FROM mq_batch FORCE INDEX (batch_lease)
        WHERE type = p_type AND lease_until <= v_now AND LOCATE(batch_key, v_held) = 0
        ORDER BY lease_until
        LIMIT 1
        FOR UPDATE SKIP LOCKED;
        IF v_key IS NULL THEN
            LEAVE rescue;
        END IF;
        CALL imq_count_free(v_items, v_free);
        IF v_free < JSON_LENGTH(v_items) THEN
            -- A handler's open transaction has saved a step.
            SET v_held = CONCAT(v_held, v_key);
            ITERATE rescue;
        END IF;
        SET p_batches = p_batches - 1;
        DELETE FROM mq_batch WHERE batch_key = v_key;
        -- A message with attempts left becomes ready at once, at the position where it was sent. The others are
        -- dead-lettered.
        SELECT CONCAT('[', GROUP_CONCAT(IF(
                j.attempt < COALESCE(m.max_attempts, v_max_attempts), CONCAT('[', j.id, ',', j.attempt, ']'), NULL
            ) ORDER BY j.id), ']'),
            CONCAT('[', GROUP_CONCAT(IF(
                j.attempt < COALESCE(m.max_attempts, v_max_attempts), NULL,
                CONCAT('[', j.id, ',', j.attempt, ',-1,"lease expired: the consumer died or was too slow"]')
            ) ORDER BY j.id), ']')
        INTO v_left, v_spent
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id;
        IF v_left IS NOT NULL THEN
            CALL imq_put_back(p_type, v_left);
        END IF;
        IF v_spent IS NOT NULL THEN
            CALL imq_fail_messages(p_type, v_consumer, v_spent, v_dead);
        END IF;
        SET p_count = p_count + JSON_LENGTH(v_items);
    END WHILE;
END
