-- send_changes: send a message of one changed row to each of its subscriptions, and for a topic to each type that is bound to it; the triggers of watched tables call it.
-- Arguments:   p_label (the table, as messages name it), p_action (I, U or D), p_key, p_old_key (JSON; NULL: none)
-- Returns:     nothing
-- Errors:      none
-- Transaction: the writer's
-- Example:     CALL mq_send_changes('stock', 'I', '{"id":17}', NULL);
--
-- Not mq_send: inside of a trigger nothing may begin, commit or return rows. Nor send_one: the writer's statement opens each table that
-- any procedure names which it could reach.

DROP PROCEDURE IF EXISTS mq_send_changes;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_changes(
    IN p_label varchar(200) CHARACTER SET utf8mb4,
    IN p_action char(1) CHARACTER SET ascii,
    IN p_key longtext CHARACTER SET utf8mb4,
    IN p_old_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_type, v_topic varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_grouped, v_ring tinyint;
    DECLARE v_done, v_topics tinyint DEFAULT 0;
    DECLARE v_part tinyint DEFAULT 1;
    DECLARE v_source varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_body longtext CHARACTER SET utf8mb4 DEFAULT CONCAT('{"table":', JSON_QUOTE(p_label), ',"action":"', p_action,
        '","key":', p_key, IF(COALESCE(CAST(p_old_key AS binary) = CAST(p_key AS binary), 1), '',
            CONCAT(',"old_key":', p_old_key)), '}');
    DECLARE subscribed CURSOR FOR
        SELECT s.type, (SELECT q.grouped FROM mq_queue AS q WHERE q.type IN (s.type, '') ORDER BY q.type DESC LIMIT 1),
            EXISTS (SELECT * FROM mq_ring AS r FORCE INDEX (ring_newest) WHERE r.type = s.type)
        FROM mq_subscription AS s
        WHERE s.label = p_label AND s.action = p_action
        ORDER BY s.type;
    DECLARE bound CURSOR FOR
        SELECT t.type, t.topic, (SELECT q.grouped FROM mq_queue AS q WHERE q.type IN (t.type, '') ORDER BY q.type DESC LIMIT 1),
            EXISTS (SELECT * FROM mq_ring AS r FORCE INDEX (ring_newest) WHERE r.type = t.type)
        FROM (
            SELECT DISTINCT b.type, s.topic
            FROM mq_subscription AS s
            JOIN mq_binding AS b ON s.path LIKE b.path
            WHERE s.label = p_label AND s.action = p_action AND s.type = ''
        ) AS t
        ORDER BY 1, 2;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
    CALL mq_reader_name(NULL, v_source);
    OPEN subscribed;
    types: LOOP
        IF v_part = 1 THEN
            FETCH subscribed INTO v_type, v_grouped, v_ring;
        ELSE
            FETCH bound INTO v_type, v_topic, v_grouped, v_ring;
        END IF;
        IF v_done AND v_part = 1 AND v_topics THEN
            -- Whoever has no subscription to a topic pays for none.
            OPEN bound;
            SET v_part = 2, v_done = 0;
            ITERATE types;
        ELSEIF v_done THEN
            LEAVE types;
        ELSEIF v_type = '' THEN
            SET v_topics = 1;
            ITERATE types;
        END IF;
        INSERT INTO mq_message (run_at, created_at, priority, type, body, headers, source)
        VALUES (v_now, v_now, 0, v_type, v_body, CONCAT('{"topic":"', v_topic, '"}'), v_source);
        IF v_grouped THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (v_type, '', LAST_INSERT_ID(), 0);
        END IF;
        INSERT INTO mq_ready (type, priority, run_at, id, attempts)
        VALUES (v_type, IF(v_ring, -32768, 0), IF(v_ring, '1000-01-01', v_now), LAST_INSERT_ID(), 0);
    END LOOP;
    CLOSE subscribed;
    IF v_part = 2 THEN
        CLOSE bound;
    END IF;
END//

DELIMITER ;
