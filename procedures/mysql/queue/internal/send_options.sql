-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments:   p_options, p_many (1: for several messages, which have no dedup_key and so no on_conflict)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_options(
    IN p_options longtext CHARACTER SET utf8mb4, IN p_many tinyint, OUT p_run_at datetime(6), OUT p_priority bigint,
    OUT p_group_key longtext CHARACTER SET utf8mb4, OUT p_dedup_key longtext CHARACTER SET utf8mb4, OUT p_max_attempts bigint,
    OUT p_headers longtext CHARACTER SET utf8mb4, OUT p_source longtext CHARACTER SET utf8mb4, OUT p_delay_seconds bigint,
    OUT p_on_conflict longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_known text CHARACTER SET utf8mb4 DEFAULT '{"run_at": "time", "priority": [-32768, 32767], "group_key": "text",
        "dedup_key": "text", "max_attempts": [1, 1000], "headers": "text", "source": "text", "delay_seconds": [0, 315360000],
        "on_conflict": "text"}';
    DECLARE c_string varchar(100) CHARACTER SET utf8mb4 DEFAULT '"[^"\\\\[:cntrl:]]*(?:\\\\["\\\\/][^"\\\\[:cntrl:]]*)*+"';
    DECLARE c_member varchar(400) CHARACTER SET utf8mb4 DEFAULT CONCAT('[ \\t\\r\\n]*"(?:(?:group_key|headers|source',
        IF(p_many, '', '|dedup_key|on_conflict'), ')"[ \\t\\r\\n]*:[ \\t\\r\\n]*', c_string,
        '|(?:priority|max_attempts|delay_seconds)"[ \\t\\r\\n]*:[ \\t\\r\\n]*-?(?:0|[1-9][0-9]{0,8}))[ \\t\\r\\n]*');
    DECLARE v_read, v_quoted longtext CHARACTER SET utf8mb4;
    IF p_options IS NOT NULL THEN
        -- read_options takes more time than all the rest of send_with. It has nothing to add to known names that are given
        -- once, with texts and whole numbers: then the quotes that no backslash precedes are two for each name and each text.
        IF CHAR_LENGTH(p_options) <= 1000
                AND p_options COLLATE utf8mb4_bin REGEXP CONCAT('^[ \\t\\r\\n]*\\{(?:', c_member,
                    '(?:,(?=[ \\t\\r\\n]*")|(?=\\})))+\\}[ \\t\\r\\n]*$') THEN
            SET v_read = p_options, v_quoted = REPLACE(REPLACE(p_options, '\\\\', ''), '\\"', '');
        ELSE
            CALL imq_read_options(p_options, 'options', IF(p_many, JSON_REMOVE(c_known, '$.dedup_key', '$.on_conflict'), c_known),
                NULL, v_read);
        END IF;
        SELECT j.run_at, j.priority, j.group_key, j.dedup_key, j.max_attempts, j.headers, j.source, j.delay_seconds, j.on_conflict
        INTO p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source, p_delay_seconds, p_on_conflict
        FROM JSON_TABLE(v_read, '$' COLUMNS (run_at varchar(30) PATH '$.run_at', priority int PATH '$.priority',
            group_key longtext CHARACTER SET utf8mb4 PATH '$.group_key', dedup_key longtext CHARACTER SET utf8mb4 PATH '$.dedup_key',
            max_attempts int PATH '$.max_attempts', headers longtext CHARACTER SET utf8mb4 PATH '$.headers',
            source longtext CHARACTER SET utf8mb4 PATH '$.source', delay_seconds int PATH '$.delay_seconds',
            on_conflict longtext CHARACTER SET utf8mb4 PATH '$.on_conflict')) AS j;
        IF CHAR_LENGTH(v_quoted) - CHAR_LENGTH(REPLACE(v_quoted, '"', '')) <> 2 * ((p_priority IS NOT NULL)
                + (p_max_attempts IS NOT NULL) + (p_delay_seconds IS NOT NULL)) + 4 * ((p_group_key IS NOT NULL)
                + (p_dedup_key IS NOT NULL) + (p_headers IS NOT NULL) + (p_source IS NOT NULL) + (p_on_conflict IS NOT NULL)) THEN
            CALL imq_read_options(p_options, 'options', c_known, NULL, v_read);
        END IF;
    END IF;
END
