-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   p_type (1 to 200 characters), p_bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string), p_options (a flat
--              JSON object, for all the messages; NULL: none): run_at, delay_seconds, priority, group_key, max_attempts,
--              headers, source, as in send_with
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     CALL mq_send_batch('email', '{"to":"ada@example.org"}\n{"to":"alan@example.org"}', '{"delay_seconds": 60}');
--
-- A recursive query over the bytes splits the list. JSON_TABLE would need REPLACE to turn the lines into an array, which
-- takes minutes for 10 MB on MariaDB. A loop takes twice as long as the query.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_batch(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_bodies longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Empty lines do not count as bodies, so the recursion needs a limit of its own.
    DECLARE c_lines int DEFAULT 20000;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    -- Binary: finding the n-th character of a long utf8mb4 text reads it from its beginning each time.
    DECLARE v_list longblob DEFAULT CONCAT(p_bodies, '\n');
    DECLARE v_run_at datetime(6);
    DECLARE v_priority, v_max_attempts, v_delay_seconds, v_count, v_first, v_bad, v_end bigint;
    DECLARE v_group_key, v_headers, v_source, v_ignored, v_ids longtext CHARACTER SET utf8mb4;
    DECLARE v_grouped, v_ring, v_fair, v_own tinyint;
    DECLARE v_mine varchar(200) CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    IF p_options IS NOT NULL THEN
        CALL imq_send_options(p_options, 1, v_run_at, v_priority, v_group_key, v_ignored, v_max_attempts, v_headers, v_source,
            v_delay_seconds, v_ignored);
        CALL imq_require_message('', v_run_at, v_priority, v_group_key, NULL, v_max_attempts, v_headers, v_source,
            v_delay_seconds, NULL);
    END IF;
    SET v_run_at = COALESCE(v_run_at, v_now + INTERVAL v_delay_seconds SECOND, v_now), v_priority = COALESCE(v_priority, 0);
    CALL imq_begin_call(0, v_own);
    IF LENGTH(v_list) > 16777217 OR LEFT(v_list, 1) = '"' OR LOCATE('\n"', v_list) > 0 THEN
        WITH RECURSIVE line (n, a, z) AS (
            SELECT 1, CAST(1 AS signed), CAST(LOCATE(0x0A, v_list) AS signed)
            UNION ALL
            SELECT n + 1, z + 1, LOCATE(0x0A, v_list, z + 1) FROM line WHERE LOCATE(0x0A, v_list, z + 1) > 0 AND n < c_lines
        )
        SELECT MIN(IF(l.valid, NULL, l.n)),
            MIN(IF(LENGTH(IF(l.quoted AND l.valid, JSON_UNQUOTE(JSON_EXTRACT(l.item, '$')), l.item)) > 16777216, l.n, NULL))
        INTO v_bad, v_end
        FROM (
            -- Refuse the character NUL, as the other databases do.
            SELECT q.*, NOT q.quoted OR IF(JSON_VALID(q.item), LOCATE(0x00, CAST(JSON_UNQUOTE(JSON_EXTRACT(q.item, '$')) AS binary)) = 0, FALSE)
                -- MariaDB's JSON_VALID accepts any escape.
                /*M! AND q.item NOT REGEXP '(?<!\\\\)(\\\\\\\\)*\\\\[^"\\\\/bfnrtu]' */ AS valid
            FROM (
                SELECT n, SUBSTRING(v_list, a, 1) = '"' AS quoted,
                    CONVERT(SUBSTRING(v_list, a, z - a) USING utf8mb4) AS item
                FROM line
                WHERE SUBSTRING(v_list, a, 1) = '"' OR z - a > 16777216
            ) AS q
        ) AS l;
        IF v_bad IS NOT NULL THEN
            CALL imq_raise_error('invalid_argument', CONCAT('bodies: line ', v_bad,
                ' begins with a double quote and is not a JSON string'));
        END IF;
        IF v_end IS NOT NULL THEN
            CALL imq_raise_error('invalid_argument', CONCAT('bodies: line ', v_end,
                ': must be a text of up to 16 MiB (16,777,216 bytes)'));
        END IF;
    END IF;

    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    CALL imq_consumer_name(NULL, v_mine);
    INSERT INTO mq_message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, source)
    WITH RECURSIVE line (n, a, z) AS (
        SELECT 1, CAST(1 AS signed), CAST(LOCATE(0x0A, v_list) AS signed)
        UNION ALL
        SELECT n + 1, z + 1, LOCATE(0x0A, v_list, z + 1) FROM line WHERE LOCATE(0x0A, v_list, z + 1) > 0 AND n < c_lines
    )
    SELECT v_run_at, v_now, v_priority, v_max_attempts, p_type, IF(
        -- JSON_EXTRACT first: MySQL's JSON_UNQUOTE decodes no text that ends with white space.
        SUBSTRING(v_list, a, 1) = '"', JSON_UNQUOTE(JSON_EXTRACT(CONVERT(SUBSTRING(v_list, a, z - a) USING utf8mb4), '$')),
        CONVERT(SUBSTRING(v_list, a, z - a) USING utf8mb4)
    ), v_headers, v_group_key, v_mine
    FROM line
    WHERE z > a;
    SET v_count = ROW_COUNT();
    SET v_first = LAST_INSERT_ID();
    IF v_count NOT BETWEEN 1 AND 10000 OR p_bodies IS NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT('bodies: must be 1 to 10,000 lines, not ',
            IF(p_bodies IS NULL, 0, v_count)));
    END IF;
    -- Other sessions may have sent messages between these ids. v_mine holds the connection number, so these rows are from
    -- this call. That is why they get another source only below.
    SELECT CONCAT('[', GROUP_CONCAT('[', id, ']'), ']'), COUNT(*) INTO v_ids, v_end
    FROM mq_message FORCE INDEX (PRIMARY)
    WHERE id >= v_first AND type = p_type AND created_at = v_now AND source = v_mine;
    IF v_end <> v_count THEN
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = 'send_batch: internal error: the ids of the new messages could not be read';
    END IF;
    IF v_source IS NOT NULL THEN
        UPDATE JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        SET m.source = v_source;
    END IF;
    IF v_run_at > v_now THEN
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
        SELECT p_type, v_run_at, j.id, v_priority, 0 FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
    ELSE
        IF v_grouped THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts)
            SELECT p_type, COALESCE(v_group_key, ''), j.id, 0 FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
        END IF;
        INSERT INTO mq_ready (type, priority, lane, run_at, id, attempts)
        SELECT p_type, IF(v_ring, -32768, v_priority), IF(v_fair, COALESCE(v_group_key, ''), ''),
            IF(v_ring OR v_fair AND NOT v_grouped, '1000-01-01', v_run_at), j.id, 0
        FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
        IF v_run_at < v_now THEN
            CALL imq_lower_mark(p_type);
        END IF;
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
