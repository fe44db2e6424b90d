-- read_failures: read finish_batch's list of failures and match it with the messages of the batch.
-- Arguments:   p_failures (one per line: id,retry_after_seconds,error; a line that does not begin with two such fields
--              continues the error above it), p_items (a JSON array of [id, attempt, ...])
-- Returns:     p_failed: a JSON array of [id, attempt, retry or null, error], one for each listed id in p_items, from its
--              first line; p_others: the items that are not listed; NULL: none
-- Transaction: needs begin_call, which raises the limits of recursion and GROUP_CONCAT

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_failures(
    IN p_failures longtext CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_failed longtext CHARACTER SET utf8mb4, OUT p_others longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_lines int DEFAULT 1000000;
    -- In bytes: to find the n-th character of a long utf8 text, the server reads it from the start each time.
    DECLARE v_list longblob DEFAULT CONCAT(p_failures, '\n');
    DECLARE v_entries longtext CHARACTER SET utf8mb4;
    DECLARE v_bad, v_bad_error, v_end bigint;
    -- An entry ends at the last nonempty line before the next entry.
    WITH RECURSIVE line (n, a, z) AS (
        SELECT 1, CAST(1 AS signed), CAST(LOCATE(0x0A, v_list) AS signed)
        UNION ALL
        SELECT n + 1, z + 1, LOCATE(0x0A, v_list, z + 1) FROM line WHERE LOCATE(0x0A, v_list, z + 1) > 0 AND n < c_lines
    )
    SELECT CONCAT('[', GROUP_CONCAT('[', e.n, ',"', e.head, '",', e.a + LENGTH(e.head) + 1, ',', e.z, ']'), ']'),
        MIN(IF(e.well_formed, IF(e.quoted, e.more, NULL), COALESCE(e.n, e.more))), MIN(e.bad_error),
        (SELECT MAX(z) FROM line)
    INTO v_entries, v_bad, v_bad_error, v_end
    FROM (
        SELECT MAX(g.n) AS n, MAX(g.head) AS head, MAX(IF(g.head IS NULL, NULL, g.a)) AS a, MAX(g.z) AS z,
            MIN(IF(g.head IS NULL, g.line, NULL)) AS more, MAX(g.quoted) AS quoted, MAX(g.bad_error) AS bad_error,
            COALESCE(MAX(g.head) REGEXP '^[0-9]{1,18},(-1|[0-9]{0,9})$', 0)
                AND COALESCE(NULLIF(SUBSTRING_INDEX(MAX(g.head), ',', -1), ''), '0') + 0 <= 315360000 AS well_formed
        FROM (
            SELECT h.n AS line, IF(h.head IS NULL, NULL, h.n) AS n, h.head, h.a, h.z,
                LEFT(h.error, 1) = '"' AS quoted, SUM(h.head IS NOT NULL) OVER (ORDER BY h.n) AS entry,
                -- The character NUL is refused, as on the other databases.
                IF(LEFT(h.error, 1) <> '"'
                    OR IF(JSON_VALID(h.error), LOCATE(0x00, CAST(JSON_UNQUOTE(JSON_EXTRACT(h.error, '$')) AS binary)) = 0, FALSE)
                    -- MariaDB accepts any escape as valid. MySQL's client adds a blank after such a comment, so nothing
                    -- may follow it on the line.
                    /*M! AND h.error NOT REGEXP '(?<!\\\\)(\\\\\\\\)*\\\\[^"\\\\/bfnrtu]' */
                    , NULL, IF(h.error IS NULL, NULL, h.n)) AS bad_error
            FROM (
                SELECT s.*, SUBSTRING(s.item, CHAR_LENGTH(s.head) + 2) AS error
                FROM (
                    SELECT k.*, IF(LEFT(k.item, 500) REGEXP '^[0-9]+,[-0-9]*,', SUBSTRING_INDEX(k.item, ',', 2), NULL) AS head
                    FROM (SELECT n, a, z, CONVERT(SUBSTRING(v_list, a, z - a) USING utf8mb4) AS item FROM line WHERE z > a) AS k
                ) AS s
            ) AS h
        ) AS g
        GROUP BY g.entry
    ) AS e;
    IF v_bad <= COALESCE(v_bad_error, v_bad) THEN
        CALL imq_raise_error('invalid_argument', CONCAT('failures: line ', v_bad, ': must be id,retry_after_seconds,error; '
            'the seconds empty, -1, or 0 to 315,360,000'));
    END IF;
    IF v_bad_error IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT('failures: line ', v_bad_error,
            ': the error begins with a double quote and is not a JSON string'));
    END IF;
    IF v_end < LENGTH(v_list) THEN
        CALL imq_raise_error('invalid_argument', CONCAT('failures: must be at most ', FORMAT(c_lines, 0, 'en_US'), ' lines'));
    END IF;

    -- A union with LEAD instead of a join, which would read JSON_TABLE once per row. The failure of an item is the next
    -- row of its id.
    SELECT CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND b.line > 0, CONCAT('[', b.id, ',', b.attempt, ',', b.retry, ',',
            JSON_QUOTE(LEFT(IF(LEFT(b.error, 1) = '"', JSON_UNQUOTE(JSON_EXTRACT(b.error, '$')), b.error), 4000)), ']'), NULL)), ']'),
        CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND b.line IS NULL, CONCAT('[', b.id, ',', b.attempt, ']'), NULL)), ']')
    INTO p_failed, p_others
    FROM (
        SELECT u.n, u.id, u.attempt, LEAD(u.n) OVER w AS line, LEAD(u.retry) OVER w AS retry, LEAD(u.error) OVER w AS error
        FROM (
            SELECT 0 AS n, j.id, j.attempt, NULL AS retry, NULL AS error
            FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
            UNION ALL
            SELECT l.n, CAST(SUBSTRING_INDEX(l.head, ',', 1) AS signed), NULL,
                COALESCE(NULLIF(SUBSTRING_INDEX(l.head, ',', -1), ''), 'null'),
                CONVERT(SUBSTRING(v_list, l.a, l.z - l.a) USING utf8mb4)
            FROM JSON_TABLE(COALESCE(v_entries, '[]'), '$[*]' COLUMNS (n int PATH '$[0]',
                head varchar(40) CHARACTER SET utf8mb4 PATH '$[1]', a bigint PATH '$[2]', z bigint PATH '$[3]')) AS l
        ) AS u
        WINDOW w AS (PARTITION BY u.id ORDER BY u.n)
    ) AS b;
END
