-- delete_messages: delete messages whose row in a state table is already deleted.
-- Arguments:   p_items (a JSON array of arrays that begin with an id)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_delete_messages(IN p_items longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Small batches often have one message. A joined delete costs MariaDB a temporary table, which is a file.
    DECLARE v_one bigint DEFAULT IF(JSON_LENGTH(p_items) = 1, JSON_EXTRACT(p_items, '$[0][0]'), NULL);
    DECLARE v_type, v_dedup_key varchar(200) CHARACTER SET utf8mb4;
    IF v_one IS NULL THEN
        DELETE m, d
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        LEFT JOIN mq_dedup AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.dedup_key = m.dedup_key;
    ELSE
        -- Lock now, as the DELETE does anyway: the caller's snapshot may be older than the message.
        SELECT MAX(type), MAX(dedup_key) INTO v_type, v_dedup_key FROM mq_message WHERE id = v_one FOR UPDATE;
        DELETE FROM mq_message WHERE id = v_one;
        IF v_dedup_key IS NOT NULL THEN
            DELETE FROM mq_dedup WHERE type = v_type AND dedup_key = v_dedup_key;
        END IF;
    END IF;
END
