-- send_one: send one message whose arguments have been checked.
-- Arguments:   as for send_message; p_own (the result of begin_call; 2: a trigger may be the caller)
-- Returns:     p_id, p_created and p_changed, as from send_message
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
--
-- Triggers call this procedure. So it and the procedures that it calls must not begin or commit a transaction, return rows
-- or use dynamic SQL.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_one(
    IN p_type longtext CHARACTER SET utf8mb4, IN p_body longtext CHARACTER SET utf8mb4, IN p_run_at datetime(6),
    IN p_priority bigint, IN p_group_key longtext CHARACTER SET utf8mb4, IN p_dedup_key longtext CHARACTER SET utf8mb4,
    IN p_max_attempts bigint, IN p_headers longtext CHARACTER SET utf8mb4, IN p_source longtext CHARACTER SET utf8mb4,
    IN p_delay_seconds bigint, IN p_on_conflict longtext CHARACTER SET utf8mb4, IN p_own tinyint, OUT p_id bigint,
    OUT p_created smallint, OUT p_changed smallint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_run_at datetime(6) DEFAULT COALESCE(p_run_at, v_now + INTERVAL p_delay_seconds SECOND, v_now);
    -- At another level the snapshot may be older than this call; in a trigger, it is as old as the statement that fired it.
    DECLARE v_fresh tinyint DEFAULT p_own = 1
        OR p_own = 0 AND /*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */ = 'READ-COMMITTED';
    DECLARE v_grouped, v_ring, v_fair tinyint;
    DECLARE v_change tinyint DEFAULT COALESCE(p_on_conflict <> 'keep', 0);
    DECLARE v_source varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_live bigint;
    SET p_created = 1, p_changed = 0;
    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    CALL imq_consumer_name(p_source, v_source);
    -- Outside a transaction the locking read waits for a session that is finishing the message. Inside a transaction the
    -- read takes no lock, because the message's consumer would have to wait for the commit.
    IF p_dedup_key IS NOT NULL THEN
        IF p_own = 1 THEN
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE;
        ELSEIF v_fresh THEN
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key;
        ELSE
            -- Only a lock shows the current key. Insert it first, because locking a missing row would lock a gap. 0 stands
            -- for the message below.
            INSERT INTO mq_dedup (type, dedup_key, id) VALUES (p_type, p_dedup_key, 0) ON DUPLICATE KEY UPDATE id = mq_dedup.id;
            SELECT NULLIF(id, 0) INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE;
        END IF;
        IF p_own <> 1 AND v_live IS NOT NULL AND v_change THEN
            CALL imq_lock_key(p_type, p_dedup_key, v_grouped, v_live, v_change);
        END IF;
    END IF;
    IF v_live IS NULL THEN
        INSERT INTO mq_message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
        VALUES (v_run_at, v_now, COALESCE(p_priority, 0), p_max_attempts, p_type, p_body, p_headers, p_group_key,
            p_dedup_key, v_source);
        SET p_id = LAST_INSERT_ID();
        IF p_dedup_key IS NOT NULL THEN
            -- Of several senders that wait for one message, each gets an exclusive lock in turn; with shared locks they
            -- would deadlock.
            INSERT INTO mq_dedup (type, dedup_key, id) VALUES (p_type, p_dedup_key, p_id)
            ON DUPLICATE KEY UPDATE id = COALESCE(NULLIF(mq_dedup.id, 0), p_id);
            SELECT id INTO v_live FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE;
            IF v_live <> p_id THEN
                DELETE FROM mq_message WHERE id = p_id;
            ELSE
                SET v_live = NULL;
            END IF;
        END IF;
    END IF;

    IF v_live IS NOT NULL THEN
        SET p_id = v_live, p_created = 0;
        IF v_change THEN
            IF v_grouped AND p_own <> 1 THEN
                CALL imq_require_read_committed();
            END IF;
            CALL imq_change_message(p_type, v_grouped, v_ring, v_fair, v_live, p_on_conflict, v_now, v_run_at, COALESCE(p_priority, 0),
                p_body, p_headers, v_fresh, p_changed);
        END IF;
    ELSEIF v_run_at > v_now THEN
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        VALUES (p_type, v_run_at, p_id, COALESCE(p_priority, 0), 0);
    ELSE
        IF v_grouped THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (p_type, COALESCE(p_group_key, ''), p_id, 0);
        END IF;
        INSERT INTO mq_ready (type, priority, lane, run_at, id, attempts)
        VALUES (p_type, IF(v_ring, -32768, COALESCE(p_priority, 0)), IF(v_fair, COALESCE(p_group_key, ''), ''),
            IF(v_ring OR v_fair AND NOT v_grouped, '1000-01-01', v_run_at), p_id, 0);
        IF v_run_at < v_now THEN
            CALL imq_lower_mark(p_type);
        END IF;
    END IF;
END
