-- read_options: check a flat JSON object of options.
-- Arguments:   p_argument (the error's text begins with it), p_known (a JSON object, by name: [low, high] of a whole number,
--              where [0, 1] takes true and false too; "text"; "time"), p_defaults (a JSON object, for null)
-- Returns:     p_read: the options that are given, as a JSON object; times in UTC
--
-- Compared in a binary collation: the others know capital letters and accents as the same name.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_options(
    IN p_options longtext CHARACTER SET utf8mb4, IN p_argument varchar(200) CHARACTER SET utf8mb4,
    IN p_known text CHARACTER SET utf8mb4, IN p_defaults text CHARACTER SET utf8mb4,
    OUT p_read longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_time varchar(200) CHARACTER SET utf8mb4 DEFAULT
        '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})$';
    DECLARE v_members, v_problem longtext CHARACTER SET utf8mb4;
    CALL imq_read_object(p_options, p_argument, 0, v_members);
    SELECT CONCAT('{', COALESCE(GROUP_CONCAT(CONCAT('"', c.name, '":', CASE
                WHEN c.kind = 'null' THEN COALESCE(JSON_EXTRACT(p_defaults, CONCAT('$.', c.name)), 'null')
                WHEN c.known = '"time"' THEN CONCAT('"', c.moment, '"')
                WHEN c.kind = 'string' THEN JSON_QUOTE(c.value)
                ELSE c.value
            END)), ''), '}'),
        MIN(CASE
            WHEN c.known IS NULL THEN CONCAT(p_argument, ': ', LEFT(c.name, 60), ' is not known; known are ',
                REPLACE(REPLACE(TRIM(BOTH ']' FROM TRIM(BOTH '[' FROM JSON_KEYS(p_known))), '"', ''), ',', ', '))
            WHEN c.kind = 'null' THEN NULL
            WHEN c.known LIKE '[%' AND COALESCE(c.value NOT REGEXP '^-?[0-9]{1,19}$' OR CAST(c.value AS decimal(20)) NOT BETWEEN
                CAST(JSON_EXTRACT(c.known, '$[0]') AS signed) AND CAST(JSON_EXTRACT(c.known, '$[1]') AS signed), 1)
                THEN CONCAT(c.name, ': must be ', FORMAT(JSON_EXTRACT(c.known, '$[0]'), 0, 'en_US'), ' to ',
                    FORMAT(JSON_EXTRACT(c.known, '$[1]'), 0, 'en_US'))
            WHEN c.known LIKE '"%' AND c.kind <> 'string' THEN CONCAT(c.name, ': must be a text')
            WHEN c.known = '"time"' AND c.moment IS NULL
                THEN CONCAT(c.name, ': must be a time with its zone, such as 2026-11-27T08:30:00Z')
        END)
    INTO p_read, v_problem
    FROM (
        SELECT k.name, k.known, k.kind,
            CASE
                WHEN k.kind = 'boolean' THEN IF(JSON_EXTRACT(k.known, '$[1]') = 1, IF(k.value = 'true', '1', '0'), 'x')
                WHEN k.kind = 'string' AND k.known LIKE '[%' THEN 'x'
                ELSE k.value
            END AS value,
            CASE WHEN k.known = '"time"' AND k.value REGEXP c_time THEN
                -- A date that does not exist is NULL.
                CAST(REPLACE(SUBSTRING(k.value, 1, CHAR_LENGTH(k.value) - IF(k.value LIKE '%Z', 1, 6)), 'T', ' ') AS datetime(6))
                    - INTERVAL IF(k.value LIKE '%Z', 0, CAST(CONCAT(LEFT(RIGHT(k.value, 6), 1), 1) AS signed)
                        * (60 * LEFT(RIGHT(k.value, 5), 2) + RIGHT(k.value, 2))) MINUTE
            END AS moment
        FROM (
            SELECT CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_bin AS name, CONVERT(j.value USING utf8mb4) COLLATE utf8mb4_bin AS value, j.kind,
                CASE WHEN CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_bin REGEXP '^[a-z_]{1,40}$' THEN
                    CONVERT(JSON_EXTRACT(p_known, CONCAT('$.', j.name)) USING utf8mb4)
                END AS known
            FROM JSON_TABLE(v_members, '$[*]' COLUMNS (name longtext CHARACTER SET utf8mb4 PATH '$[1]',
                value longtext CHARACTER SET utf8mb4 PATH '$[2]', kind varchar(10) CHARACTER SET utf8mb4 PATH '$[3]')) AS j
        ) AS k
    ) AS c;
    IF v_problem IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', v_problem);
    END IF;
END
