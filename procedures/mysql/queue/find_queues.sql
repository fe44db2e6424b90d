-- find_queues: list the names of queues that have settings, a schedule, or a message that is new or active.
-- Arguments:   p_prefix (how the names begin, 1 to 200 characters; NULL: all), p_after (only names after this one, 1 to 200
--              characters; NULL: from the first), p_size (1 to 10,000; NULL: 20)
-- Returns:     type: up to p_size names in the order of their code points
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks, a few index entries per queue, however many messages it has
-- Example:     CALL mq_find_queues('mail.', NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_find_queues(
    IN p_prefix longtext CHARACTER SET utf8mb4,
    IN p_after longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    DECLARE v_prefix, v_last, v_scheduled varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_left int DEFAULT COALESCE(p_size, 20);
    CALL imq_require_name('prefix', p_prefix, 1);
    CALL imq_require_name('after', p_after, 1);
    CALL imq_require_range('size', p_size, 1, 10000);
    SET v_prefix = COALESCE(p_prefix, ''), v_last = COALESCE(p_after, '');
    -- From each name to the next one: a scan would read all messages.
    names: WHILE v_left > 0 DO
        CALL imq_next_scheduled(v_last, v_prefix, v_scheduled);
        SELECT MIN(t.type) INTO v_last
        FROM (
            (SELECT q.type FROM mq_queue AS q FORCE INDEX (PRIMARY)
                WHERE q.type > v_last AND q.type >= v_prefix ORDER BY q.type ASC LIMIT 1)
            UNION ALL
            (SELECT r.type FROM mq_ready AS r FORCE INDEX (PRIMARY)
                WHERE r.type > v_last AND r.type >= v_prefix ORDER BY r.type ASC LIMIT 1)
            UNION ALL
            (SELECT d.type FROM mq_delayed AS d FORCE INDEX (PRIMARY)
                WHERE d.type > v_last AND d.type >= v_prefix ORDER BY d.type ASC LIMIT 1)
            UNION ALL
            (SELECT b.type FROM mq_batch AS b FORCE INDEX (batch_lease)
                WHERE b.type > v_last AND b.type >= v_prefix ORDER BY b.type ASC LIMIT 1)
            UNION ALL
            SELECT v_scheduled COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
        ) AS t;
        IF v_last IS NULL OR LEFT(v_last, CHAR_LENGTH(v_prefix)) COLLATE utf8mb4_bin <> v_prefix THEN
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
