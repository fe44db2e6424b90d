-- read_object: the members of a flat JSON object, or of a list with such an object per line.
-- Arguments:   p_text (NULL: no members), p_argument (the error's text begins with it), p_lines (1: a list, whose empty
--              lines are skipped)
-- Returns:     p_members: a JSON array of [line, name, value, kind]: value is decoded, numbers are unchanged;
--              kind is string, number, boolean or null. In a list, each line has one more, [line, null, null, null]
-- Transaction: a list needs begin_call, which raises the limit of recursion
--
-- The servers' functions keep one of two equal names, and MySQL's rewrite numbers. So a pattern, which is stricter than
-- MariaDB's JSON_VALID, makes an array of texts of each member. What it does not match is then no valid array.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_object(
    IN p_text longtext CHARACTER SET utf8mb4, IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_lines tinyint,
    OUT p_members longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_lines int DEFAULT 1000000;
    -- Inside not possessive: MySQL needs memory for each character of a possessive loop.
    DECLARE c_string varchar(100) CHARACTER SET utf8mb4
        DEFAULT '"([^"\\\\]*(?:\\\\(?:["\\\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\\]*)*+)"';
    DECLARE c_member varchar(400) CHARACTER SET utf8mb4 DEFAULT CONCAT(c_string, '[ \\t\\r\\n]*:[ \\t\\r\\n]*(?:', c_string,
        '|(-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null))[ \\t\\r\\n]*[,}]');
    -- In bytes: to find the n-th character of a long utf8 text, the server reads it from the start each time.
    DECLARE v_list longblob DEFAULT CONCAT(p_text, '\n');
    DECLARE v_pairs longtext CHARACTER SET utf8mb4;
    DECLARE v_bad, v_bad_text, v_end, v_count bigint;
    DECLARE EXIT HANDLER FOR 3698, 3699
    BEGIN
        CALL imq_raise_error('invalid_argument',
            CONCAT(p_argument, ': a text has more escapes than this server can read'));
    END;
    -- As in join_call: a caller reads its arguments before it begins.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    IF NOT @@SESSION.sql_big_selects THEN
        SET SESSION sql_big_selects = 1, @mq_small_selects = 1;
    END IF;
    WITH RECURSIVE line (n, a, z) AS (
        SELECT 1, CAST(1 AS signed), CAST(IF(p_lines, LOCATE(0x0A, v_list), LENGTH(v_list)) AS signed)
        UNION ALL
        SELECT n + 1, z + 1, LOCATE(0x0A, v_list, z + 1) FROM line WHERE LOCATE(0x0A, v_list, z + 1) > 0 AND n < c_lines
    )
    SELECT CONCAT('[', GROUP_CONCAT(IF(r.fits, r.pairs, NULL)), ']'), MIN(IF(r.fits, NULL, r.n)), MAX(r.z)
    INTO v_pairs, v_bad, v_end
    FROM (
        SELECT s.n, s.z, s.pairs, JSON_VALID(s.item) AND JSON_VALID(CONCAT('[', s.pairs, ']')) AS fits
        FROM (
            SELECT k.n, k.z, k.item, CONCAT(
                REGEXP_REPLACE(REGEXP_REPLACE(k.item, '^[ \\t\\r\\n]*\\{[ \\t\\r\\n]*\\}?', ''), c_member,
                    CONCAT('[', k.n, /*M! ',"\\1","\\2\\3","\\3"],' */ /*!80000 ',"$1","$2$3","$3"],' */)),
                '[', k.n, ']') AS pairs
            FROM (
                SELECT n, z, CONVERT(SUBSTRING(v_list, a, z - a) USING utf8mb4) COLLATE utf8mb4_bin AS item
                FROM line WHERE z > a OR NOT p_lines
            ) AS k
        ) AS s
    ) AS r;
    IF v_end < LENGTH(TRIM(TRAILING '\n' FROM v_list)) THEN
        CALL imq_raise_error('invalid_argument',
            CONCAT(p_argument, ': must be at most ', FORMAT(c_lines, 0, 'en_US'), ' lines'));
    END IF;
    SELECT CONCAT('[', COALESCE(GROUP_CONCAT(IF(t.name IS NULL AND NOT p_lines, NULL,
            JSON_ARRAY(t.n, t.name, IF(t.literal = 'null', NULL, t.value), CASE WHEN t.literal = '' THEN 'string'
                WHEN t.literal IN ('true', 'false') THEN 'boolean' WHEN t.literal = 'null' THEN 'null'
                WHEN t.literal IS NOT NULL THEN 'number' END))), ''), ']'),
        COUNT(t.name) - COUNT(DISTINCT t.n, CAST(t.name AS binary)),
        MIN(IF(LOCATE(0x00, CAST(CONCAT(t.name, t.value) AS binary)), t.n, NULL))
    INTO p_members, v_count, v_bad_text
    FROM JSON_TABLE(COALESCE(v_pairs, '[]'), '$[*]' COLUMNS (n int PATH '$[0]',
        name longtext CHARACTER SET utf8mb4 PATH '$[1]',
        value longtext CHARACTER SET utf8mb4 PATH '$[2]', literal longtext CHARACTER SET utf8mb4 PATH '$[3]')) AS t;
    SET v_bad = COALESCE(v_bad, v_bad_text);
    IF v_bad IS NULL AND v_count > 0 THEN
        SELECT MIN(d.n) INTO v_bad
        FROM (
            SELECT t.n
            FROM JSON_TABLE(v_pairs, '$[*]' COLUMNS (n int PATH '$[0]',
                name longtext CHARACTER SET utf8mb4 PATH '$[1]')) AS t
            WHERE t.name IS NOT NULL
            GROUP BY t.n, CAST(t.name AS binary)
            HAVING COUNT(*) > 1
        ) AS d;
    END IF;
    IF v_bad IS NOT NULL AND p_text IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, IF(p_lines, CONCAT(': line ', v_bad), ''),
            ': must be a JSON object with unique names, no nested values and no NUL character'));
    END IF;
END
