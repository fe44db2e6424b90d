-- find_queues: list the names of queues that have settings, a schedule, or a message that is new or active.
-- Arguments:   p_prefix (how the names begin, 1 to 200 characters; NULL: all), p_after (only names after this one, 1 to 200
--              characters; NULL: from the first), p_size (1 to 10,000; NULL: 20)
-- Returns:     type: up to p_size names in the order of their code points
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks, a few index entries per queue, however many messages it has
-- Example:     CALL mq_find_queues('mail.', NULL, NULL);
--
-- It goes from each name to the next one, because a scan would read all messages. Of each table it keeps the next name, and
-- reads on when that has been listed: a UNION of all tables for each name took ten times as long.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_find_queues(
    IN p_prefix longtext CHARACTER SET utf8mb4,
    IN p_after longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    DECLARE v_prefix, v_last varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ DEFAULT '';
    DECLARE v_queue, v_ready, v_delayed, v_batch, v_scheduled varchar(200)
        CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ DEFAULT '';
    DECLARE v_left int DEFAULT COALESCE(p_size, 20);
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    CALL imq_require_name('prefix', p_prefix, 1);
    CALL imq_require_name('after', p_after, 1);
    CALL imq_require_range('size', p_size, 1, 10000);
    SET v_prefix = COALESCE(p_prefix, ''), v_last = COALESCE(p_after, '');
    names: WHILE v_left > 0 DO
        IF v_queue <= v_last THEN
            SET v_queue = NULL;
            SELECT q.type INTO v_queue FROM mq_queue AS q FORCE INDEX (PRIMARY)
            WHERE q.type > v_last AND q.type >= v_prefix ORDER BY q.type ASC LIMIT 1;
        END IF;
        IF v_ready <= v_last THEN
            SET v_ready = NULL;
            SELECT r.type INTO v_ready FROM mq_ready AS r FORCE INDEX (PRIMARY)
            WHERE r.type > v_last AND r.type >= v_prefix ORDER BY r.type ASC LIMIT 1;
        END IF;
        IF v_delayed <= v_last THEN
            SET v_delayed = NULL;
            SELECT d.type INTO v_delayed FROM mq_delayed AS d FORCE INDEX (PRIMARY)
            WHERE d.type > v_last AND d.type >= v_prefix ORDER BY d.type ASC LIMIT 1;
        END IF;
        IF v_batch <= v_last THEN
            SET v_batch = NULL;
            SELECT b.type INTO v_batch FROM mq_batch AS b FORCE INDEX (batch_lease)
            WHERE b.type > v_last AND b.type >= v_prefix ORDER BY b.type ASC LIMIT 1;
        END IF;
        IF v_scheduled <= v_last THEN
            CALL imq_next_scheduled(v_last, v_prefix, v_scheduled);
        END IF;
        -- The table is read to its end where it is NULL.
        SET v_last = COALESCE(v_queue, v_ready, v_delayed, v_batch, v_scheduled),
            v_last = LEAST(v_last, COALESCE(v_queue, v_last), COALESCE(v_ready, v_last), COALESCE(v_delayed, v_last),
                COALESCE(v_batch, v_last), COALESCE(v_scheduled, v_last));
        IF v_last IS NULL OR LEFT(v_last, CHAR_LENGTH(v_prefix)) <> v_prefix THEN
            LEAVE names;
        END IF;
        SET v_found = CONCAT_WS(',', v_found, JSON_QUOTE(v_last)), v_left = v_left - 1;
    END WHILE;
    SELECT j.type
    FROM JSON_TABLE(CONCAT('[', COALESCE(v_found, ''), ']'), '$[*]' COLUMNS (
        n FOR ORDINALITY,
        type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
    )) AS j
    ORDER BY j.n;
END
