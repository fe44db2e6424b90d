-- send_message: send one message with all options.
-- Arguments:   p_type, p_body, p_run_at (UTC; NULL: now), p_priority (-32,768 to 32,767, smaller first; NULL: 0), p_group_key,
--              p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's), p_headers (up to 64 KiB), p_source (NULL: the
--              application name); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent the same dedup_key
-- Example:     CALL mq_send_message('email', '{}', UTC_TIMESTAMP() + INTERVAL 1 HOUR, NULL, NULL, 'a-1', NULL, NULL, NULL);

DROP PROCEDURE IF EXISTS mq_send_message;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_message(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4,
    IN p_run_at datetime(6),
    IN p_priority bigint,
    IN p_group_key longtext CHARACTER SET utf8mb4,
    IN p_dedup_key longtext CHARACTER SET utf8mb4,
    IN p_max_attempts bigint,
    IN p_headers longtext CHARACTER SET utf8mb4,
    IN p_source longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_run_at datetime(6) DEFAULT COALESCE(p_run_at, v_now);
    DECLARE v_ordered, v_ring tinyint;
    DECLARE v_created smallint DEFAULT 1;
    DECLARE v_source varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_id, v_live bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('type', p_type, 0);
    IF p_body IS NULL OR LENGTH(p_body) > 16777216 THEN
        CALL mq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    IF v_run_at > v_now + INTERVAL 315360000 SECOND THEN
        CALL mq_raise_error('invalid_argument', 'run_at: must be at most 315,360,000 seconds (ten years) ahead');
    END IF;
    CALL mq_require_range('priority', p_priority, -32768, 32767);
    CALL mq_require_name('group_key', p_group_key, 1);
    CALL mq_require_name('dedup_key', p_dedup_key, 1);
    CALL mq_require_range('max_attempts', p_max_attempts, 1, 1000);
    IF LENGTH(p_headers) > 65536 THEN
        CALL mq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    CALL mq_require_name('source', p_source, 1);

    CALL mq_begin_call(0, v_own);
    SELECT ordered, EXISTS (SELECT * FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type) INTO v_ordered, v_ring
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    CALL mq_reader_name(p_source, v_source);
    -- A message that is just being finished is waited for. Inside a transaction it is read without a lock, which would make
    -- the message's consumer wait for the commit.
    IF p_dedup_key IS NOT NULL THEN
        IF v_own THEN
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE;
        ELSE
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key;
        END IF;
    END IF;
    IF v_live IS NULL THEN
        INSERT INTO mq_message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
        VALUES (v_run_at, v_now, COALESCE(p_priority, 0), p_max_attempts, p_type, p_body, p_headers, p_group_key,
            p_dedup_key, v_source);
        SET v_id = LAST_INSERT_ID();
        IF p_dedup_key IS NOT NULL THEN
            -- Of several senders that wait for one, each gets an exclusive lock in turn: with shared ones they would deadlock.
            INSERT INTO mq_dedup (type, dedup_key, id) VALUES (p_type, p_dedup_key, v_id)
            ON DUPLICATE KEY UPDATE id = mq_dedup.id;
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE;
            IF v_live <> v_id THEN
                DELETE FROM mq_message WHERE id = v_id;
            ELSE
                SET v_live = NULL;
            END IF;
        END IF;
    END IF;

    IF v_live IS NOT NULL THEN
        SET v_id = v_live;
        SET v_created = 0;
    ELSEIF v_run_at > v_now THEN
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        VALUES (p_type, v_run_at, v_id, COALESCE(p_priority, 0), 0);
    ELSE
        IF v_ordered THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (p_type, COALESCE(p_group_key, ''), v_id, 0);
        END IF;
        INSERT INTO mq_ready (type, priority, run_at, id, attempts)
        VALUES (p_type, IF(v_ring, -32768, COALESCE(p_priority, 0)), IF(v_ring, '1000-01-01', v_run_at), v_id, 0);
        IF v_run_at < v_now THEN
            CALL mq_lower_mark(p_type);
        END IF;
    END IF;
    CALL mq_end_call(v_own);
    SELECT v_id AS id, v_created AS created;
END//

DELIMITER ;
