-- hold_due: claim the due entries whose rows were found, and delete those whose rows are gone.
-- Arguments:   p_batch_key (from imq_open_claim), p_active (1: entries whose rows are at active_value), p_due (a JSON array
--              of [id, ident, active]), p_found (a JSON array of [ident, row, count]: locked rows), p_there (a JSON array of
--              [ident, count]: existing rows, locked by others or not); NULL: none
-- Returns:     p_rows: '[id,row],...' of the claimed rows; p_dying: a JSON array of [id, ident, active, attempts, -1, error]
--              of rows without attempts left; NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_hold_due(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_active tinyint, IN p_due longtext CHARACTER SET utf8mb4,
    IN p_found longtext CHARACTER SET utf8mb4, IN p_there longtext CHARACTER SET utf8mb4,
    OUT p_rows longtext CHARACTER SET utf8mb4, OUT p_dying longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_ids, v_gone longtext CHARACTER SET utf8mb4;
    DECLARE v_max int;
    SELECT b.name, b.consumer, p.max_attempts INTO v_name, v_consumer, v_max
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    SELECT CONCAT('[', GROUP_CONCAT(f.id ORDER BY f.id), ']'),
        GROUP_CONCAT(IF(f.attempts < v_max, CONCAT('[', f.id, ',', JSON_QUOTE(f.row_), ']'), NULL) ORDER BY f.id),
        CONCAT('[', GROUP_CONCAT(IF(f.attempts < v_max, NULL,
            JSON_ARRAY(f.id, f.ident, p_active, f.attempts, -1, f.error)) ORDER BY f.id), ']')
    INTO v_ids, p_rows, p_dying
    FROM (
        SELECT e.id, e.ident, e.attempts, e.error, j.row_, j.copies,
            ROW_NUMBER() OVER (PARTITION BY e.ident_hash ORDER BY e.run_at, e.id) AS n
        FROM JSON_TABLE(p_found, '$[*]' COLUMNS (ident longtext CHARACTER SET utf8mb4 PATH '$[0]',
            row_ longtext CHARACTER SET utf8mb4 PATH '$[1]', copies int PATH '$[2]')) AS j
        STRAIGHT_JOIN mq_polled_row AS e ON e.name = v_name AND e.ident_hash = UNHEX(SHA2(j.ident, 256))
        WHERE e.state = 'N' AND e.active = p_active AND e.run_at <= v_now
    ) AS f
    WHERE f.n <= f.copies;
    UPDATE JSON_TABLE(COALESCE(v_ids, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
    STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
    SET e.state = 'A', e.batch_key = p_batch_key, e.consumer = v_consumer, e.attempts = e.attempts + (e.attempts < v_max);
    -- UNION ALL with a window function: a join would read JSON_TABLE once per row.
    SELECT CONCAT('[', GROUP_CONCAT(g.id ORDER BY g.id), ']') INTO v_gone
    FROM (
        SELECT u.id, ROW_NUMBER() OVER (PARTITION BY u.ident ORDER BY u.id IS NULL, u.id) AS n,
            MAX(u.copies) OVER (PARTITION BY u.ident) AS copies
        FROM (
            SELECT d.id, d.ident, 0 AS copies
            FROM JSON_TABLE(p_due, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
                active tinyint PATH '$[2]')) AS d
            WHERE d.active = p_active
            UNION ALL
            SELECT NULL, t.ident, t.copies
            FROM JSON_TABLE(COALESCE(p_there, '[]'), '$[*]' COLUMNS (ident longtext CHARACTER SET utf8mb4 PATH '$[0]',
                copies int PATH '$[1]')) AS t
        ) AS u
    ) AS g
    WHERE g.id IS NOT NULL AND g.n > g.copies;
    DELETE e FROM JSON_TABLE(COALESCE(v_gone, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
    STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
    WHERE e.name = v_name AND e.state = 'N';
END
