-- send_changes: send the messages of one changed row, if not only to one type: the triggers of watch_table do that themselves.
-- Arguments:   p_label (the table, as messages name it), p_action (I, U or D), p_key, p_old_key (JSON; NULL: no old key)
-- Transaction: the writer's
--
-- It does not call mq_send, because a trigger may not begin or commit a transaction or return rows. It does not call
-- send_one either: the server opens all tables of all procedures that a statement's triggers could call.
--
-- Types are read one by one with MIN and MAX, which the server answers during planning: a cursor over all takes longer.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_changes(
    IN p_label varchar(200) CHARACTER SET utf8mb4, IN p_action char(1) CHARACTER SET ascii,
    IN p_key longtext CHARACTER SET utf8mb4, IN p_old_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_type, v_last, v_topic, v_source varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_grouped, v_ring, v_fair, v_topics tinyint;
    DECLARE v_part tinyint DEFAULT 1;
    DECLARE v_body longtext CHARACTER SET utf8mb4 DEFAULT CONCAT('{"table":', JSON_QUOTE(p_label), ',"action":"', p_action,
        '","key":', p_key, IF(COALESCE(CAST(p_old_key AS binary) = CAST(p_key AS binary), 1), '',
            CONCAT(',"old_key":', p_old_key)), '}');
    DECLARE bound CURSOR FOR
        SELECT DISTINCT b.type, s.topic
        FROM mq_subscription AS s
        JOIN mq_binding AS b ON s.path LIKE b.path
        WHERE s.label = p_label AND s.action = p_action AND s.type = ''
        ORDER BY 1, 2;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_type = NULL;
    CALL imq_consumer_name(NULL, v_source);
    SELECT MIN(s.type), MAX(s.type) INTO v_type, v_last FROM mq_subscription AS s WHERE s.label = p_label AND s.action = p_action;
    -- Compare the length: the collation may treat other texts as empty.
    SET v_topics = LENGTH(v_type) = 0;
    WHILE v_type IS NOT NULL DO
        IF LENGTH(v_type) > 0 THEN
            SELECT COALESCE(q.grouped, d.grouped), COALESCE(q.ring, d.ring), COALESCE(q.fair, d.fair) INTO v_grouped, v_ring, v_fair
            FROM mq_queue AS d LEFT JOIN mq_queue AS q ON q.type = v_type WHERE d.type = '';
            INSERT INTO mq_message (run_at, created_at, priority, type, body, headers, source)
            VALUES (v_now, v_now, 0, v_type, v_body, CONCAT('{"topic":"', v_topic, '"}'), v_source);
            IF v_grouped THEN
                INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (v_type, '', LAST_INSERT_ID(), 0);
            END IF;
            INSERT INTO mq_ready (type, priority, run_at, id, attempts)
            VALUES (v_type, IF(v_ring, -32768, 0), IF(v_ring OR v_fair AND NOT v_grouped, '1000-01-01', v_now), LAST_INSERT_ID(), 0);
        END IF;

        IF v_part = 1 AND CAST(v_type AS binary) = CAST(v_last AS binary) THEN
            SET v_type = NULL;
        ELSEIF v_part = 1 THEN
            SELECT MIN(s.type) INTO v_type FROM mq_subscription AS s WHERE s.label = p_label AND s.action = p_action AND s.type > v_type;
        END IF;
        -- Tables without a subscribed topic skip the cursor.
        IF v_part = 1 AND v_type IS NULL AND v_topics THEN
            OPEN bound;
            SET v_part = 2;
        END IF;
        IF v_part = 2 THEN
            FETCH bound INTO v_type, v_topic;
        END IF;
    END WHILE;
END
