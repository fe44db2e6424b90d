-- read_outcomes: read the list of outcomes that finish_batch, finish_messages and finish_rows take, and sort the batch's items
--              by it.
-- Arguments:   p_outcomes (a flat JSON object per line: id, error, retry_after_seconds, dead, released), p_items (a JSON
--              array of [id, attempt, ...]), p_named (1: what the list does not name is left; 0: it is done)
-- Returns:     p_failed: a JSON array of [id, attempt, retry, error] of the items that failed (retry null: the default
--              backoff; -1: dead); p_released, p_done and p_left: JSON arrays of [id, attempt]; NULL: none
-- Transaction: needs begin_call, which raises the limits of recursion and GROUP_CONCAT

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_outcomes(
    IN p_outcomes longtext CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4, IN p_named tinyint,
    OUT p_failed longtext CHARACTER SET utf8mb4, OUT p_released longtext CHARACTER SET utf8mb4,
    OUT p_done longtext CHARACTER SET utf8mb4, OUT p_left longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_members, v_read longtext CHARACTER SET utf8mb4;
    DECLARE v_problem varchar(500) CHARACTER SET utf8mb4;
    DECLARE v_twice tinyint;
    CALL imq_read_object(p_outcomes, 'outcomes', 1, v_members);
    SELECT CONCAT('[', GROUP_CONCAT(
            JSON_ARRAY(CAST(r.id AS signed), IF(r.released, -2, IF(r.dead, -1, CAST(r.retry AS signed))), LEFT(r.error, 4000))), ']'),
        MIN(CONCAT(LPAD(r.n, 7, '0'), 'line ', r.n, ': ', r.problem)), COUNT(r.id) > COUNT(DISTINCT r.id)
    INTO v_read, v_problem, v_twice
    FROM (
        SELECT o.*, CASE
                WHEN o.unknown_ IS NOT NULL
                    THEN CONCAT('the names are id, error, retry_after_seconds, dead and released, not ', o.unknown_)
                WHEN o.id IS NULL OR o.id NOT REGEXP '^[0-9]{1,18}$' THEN 'id must be a number of 1 to 18 digits'
                WHEN o.kind NOT IN ('string', 'null') THEN 'error must be a text'
                WHEN o.retry NOT REGEXP '^[0-9]{1,9}$' OR o.retry + 0 > 315360000
                    THEN 'retry_after_seconds must be 0 to 315,360,000'
                WHEN o.flag NOT IN ('true', '1', 'false', '0') THEN 'dead must be 0 or 1'
                WHEN o.release_flag NOT IN ('true', '1', 'false', '0') THEN 'released must be 0 or 1'
                WHEN o.error IS NULL AND (o.dead OR o.retry IS NOT NULL) THEN 'retry_after_seconds and dead need an error'
                WHEN o.dead AND o.retry IS NOT NULL THEN 'dead excludes retry_after_seconds'
                WHEN o.released AND o.error IS NOT NULL THEN 'released excludes error'
            END AS problem
        FROM (
            SELECT m.n, MAX(IF(m.name = 'id', m.text, NULL)) AS id, MAX(IF(m.name = 'error', m.kind, NULL)) AS kind,
                MAX(IF(m.name = 'error', m.value, NULL)) AS error,
                MAX(IF(m.name = 'retry_after_seconds', m.text, NULL)) AS retry,
                MAX(IF(m.name = 'dead', m.text, NULL)) AS flag,
                COALESCE(MAX(m.name = 'dead' AND m.text IN ('true', '1')), 0) AS dead,
                MAX(IF(m.name = 'released', m.text, NULL)) AS release_flag,
                COALESCE(MAX(m.name = 'released' AND m.text IN ('true', '1')), 0) AS released,
                MAX(IF(m.name IN ('id', 'error', 'retry_after_seconds', 'dead', 'released'), NULL, CONVERT(m.name USING utf8mb4)))
                    AS unknown_
            FROM (
                -- A binary name: others are compared without the blanks at their end.
                SELECT j.n, CAST(j.name AS binary) AS name, j.value, j.kind, IF(j.kind = 'string', '"', j.value) AS text
                FROM JSON_TABLE(v_members, '$[*]' COLUMNS (n int PATH '$[0]',
                    name longtext CHARACTER SET utf8mb4 PATH '$[1]', value longtext CHARACTER SET utf8mb4 PATH '$[2]',
                    kind varchar(10) CHARACTER SET utf8mb4 PATH '$[3]')) AS j
            ) AS m
            GROUP BY m.n
        ) AS o
    ) AS r;
    IF v_problem IS NULL AND v_twice THEN
        SET v_problem = CONCAT(LPAD('', 7, '0'), 'an id is given twice');
    END IF;
    IF v_problem IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT('outcomes: ', SUBSTRING(v_problem, 8)));
    END IF;

    -- A union with LEAD instead of a join, which would read JSON_TABLE once per row. The outcome of an item is the next row
    -- of its id.
    SELECT CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND b.error IS NOT NULL,
            CONCAT('[', b.id, ',', b.attempt, ',', COALESCE(b.retry, 'null'), ',', JSON_QUOTE(b.error), ']'), NULL)), ']'),
        CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND b.retry = -2, CONCAT('[', b.id, ',', b.attempt, ']'), NULL)), ']'),
        CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND b.error IS NULL AND COALESCE(b.retry, 0) <> -2 AND (b.named OR NOT p_named),
            CONCAT('[', b.id, ',', b.attempt, ']'), NULL)), ']'),
        CONCAT('[', GROUP_CONCAT(IF(b.n = 0 AND p_named AND NOT b.named, CONCAT('[', b.id, ',', b.attempt, ']'), NULL)), ']')
    INTO p_failed, p_released, p_done, p_left
    FROM (
        SELECT u.n, u.id, u.attempt, LEAD(u.retry) OVER w AS retry, LEAD(u.error) OVER w AS error,
            LEAD(u.n) OVER w IS NOT NULL AS named
        FROM (
            SELECT 0 AS n, j.id, j.attempt, NULL AS retry, NULL AS error
            FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
            UNION ALL
            SELECT 1, l.id, NULL, l.retry, l.error
            FROM JSON_TABLE(COALESCE(v_read, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[1]',
                error longtext CHARACTER SET utf8mb4 PATH '$[2]')) AS l
        ) AS u
        WINDOW w AS (PARTITION BY u.id ORDER BY u.n)
    ) AS b;
END
