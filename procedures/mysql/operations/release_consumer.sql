-- release_consumer: release all messages that the claims of one consumer hold, in all queues: they are ready again, and the
--                   attempt does not count.
-- Arguments:   p_consumer (1 to 200 characters; the name that its claims passed)
-- Returns:     affected: messages released; 0 when the name holds none
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips claims that another call is finishing or extending
-- Example:     CALL mq_release_consumer('worker-1');
--
-- For a process that is gone: if it still runs, its next complete raises lease_lost. Rows of polling tables stay claimed.
-- No index leads to a consumer's claims: the table of the claims is small, and this call is rare.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_release_consumer(IN p_consumer longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4;
    DECLARE v_keys, v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_affected, v_free bigint DEFAULT 0;
    DECLARE i int DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('consumer', p_consumer, 0);
    CALL imq_begin_call(1, v_own);
    -- Read without locks, and lock each claim by its key, as rescue does.
    SELECT CONCAT('[', GROUP_CONCAT('"', batch_key, '"' ORDER BY claimed_at), ']') INTO v_keys
    FROM mq_batch WHERE CAST(consumer AS binary) = CAST(p_consumer AS binary);
    WHILE i < JSON_LENGTH(v_keys) DO
        SET v_key = JSON_UNQUOTE(JSON_EXTRACT(v_keys, CONCAT('$[', i, ']'))), v_items = NULL, i = i + 1;
        SELECT MAX(b.type), MAX(b.items) INTO v_type, v_items
        FROM (SELECT type, items FROM mq_batch WHERE batch_key = v_key FOR UPDATE SKIP LOCKED) AS b;
        SET v_free = NULL;
        IF v_items IS NOT NULL THEN
            CALL imq_count_free(v_items, v_free);
        END IF;
        -- The messages of a handler's open transaction that has saved a step stay.
        IF v_free = JSON_LENGTH(v_items) THEN
            DELETE FROM mq_batch WHERE batch_key = v_key;
            CALL imq_release_items(v_type, v_items);
            SET v_affected = v_affected + JSON_LENGTH(v_items);
        END IF;
    END WHILE;
    CALL imq_end_call(v_own);
    SELECT v_affected AS affected;
END
