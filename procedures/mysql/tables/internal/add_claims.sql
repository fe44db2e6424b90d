-- add_claims: claim rows that have no entry yet.
-- Arguments:   p_batch_key (from imq_open_claim), p_active (1: the rows are at active_value), p_rows (a JSON array of [ident,
--              key, place, row, copies], in claim order; copies NULL: counted here), p_held (from imq_held_copies, when
--              entries were counted before the rows were read; NULL: counted here), p_size
-- Returns:     p_added: '[id,row],...' of the claimed rows, NULL when there are none; p_count

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_claims(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_active tinyint, IN p_rows longtext CHARACTER SET utf8mb4,
    IN p_held longtext CHARACTER SET utf8mb4, IN p_size int, OUT p_added longtext CHARACTER SET utf8mb4,
    OUT p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_name, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_status, v_keyed, v_once tinyint;
    DECLARE v_first bigint;
    SELECT b.name, b.consumer, p.status_column IS NOT NULL, p.key_columns IS NOT NULL,
        p.status_column IS NULL AND p.on_complete = 'keep'
    INTO v_name, v_consumer, v_status, v_keyed, v_once
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    SET p_count = 0, p_added = NULL;
    IF v_name IS NOT NULL AND p_rows IS NOT NULL THEN
        -- With a status, dead rows are at error_value: a dead row that is ready again was set back by hand and is claimed.
        -- Of equal rows, those in excess of the entries are free. Rows claimed by a low-water mark are claimed once.
        INSERT INTO mq_polled_row (batch_key, run_at, attempts, active, state, name, consumer, ident_hash, ident, key_json,
            place, copies)
        SELECT p_batch_key, v_now, 1, p_active, 'A', v_name, v_consumer, x.ident_hash, x.ident, x.key_, x.place, x.copies
        FROM (
            -- UNION ALL with a window function: a join would read JSON_TABLE once per row.
            SELECT u.n, u.ident_hash, u.ident, u.key_, u.place, u.copies, MAX(u.held) OVER (PARTITION BY u.ident_hash) AS held
            FROM (
                SELECT j.n, UNHEX(SHA2(j.ident, 256)) AS ident_hash, j.ident, j.key_, j.place,
                    COALESCE(j.copies, ROW_NUMBER() OVER (PARTITION BY CAST(j.ident AS binary) ORDER BY j.n)) AS copies, 0 AS held
                FROM JSON_TABLE(p_rows, '$[*]' COLUMNS (n FOR ORDINALITY, ident longtext CHARACTER SET utf8mb4 PATH '$[0]',
                    key_ longtext CHARACTER SET utf8mb4 PATH '$[1]', place longtext CHARACTER SET utf8mb4 PATH '$[2]',
                    copies bigint PATH '$[4]')) AS j
                UNION ALL
                SELECT NULL, UNHEX(h.ident_hash), NULL, NULL, NULL, NULL, h.held
                FROM JSON_TABLE(COALESCE(p_held, '[]'), '$[*]' COLUMNS (ident_hash varchar(64) CHARACTER SET utf8mb4 PATH '$[0]',
                    held bigint PATH '$[1]')) AS h
            ) AS u
        ) AS x
        WHERE x.n IS NOT NULL AND (v_once OR x.copies > IF(p_held IS NOT NULL, x.held, (
            SELECT COUNT(*) FROM mq_polled_row AS e
            WHERE e.name = v_name AND e.ident_hash = x.ident_hash AND (e.state <> 'E' OR NOT v_status)
                AND (e.active = p_active OR v_keyed AND p_active = 0)
        )))
        ORDER BY x.n LIMIT p_size;
        SET p_count = ROW_COUNT(), v_first = LAST_INSERT_ID();
        IF p_count > 0 THEN
            SELECT GROUP_CONCAT(CONCAT('[', e.id, ',', JSON_QUOTE(x.row_), ']') ORDER BY e.id) INTO p_added
            FROM (
                SELECT j.ident, j.row_, COALESCE(j.copies,
                    ROW_NUMBER() OVER (PARTITION BY CAST(j.ident AS binary) ORDER BY j.n)) AS copies
                FROM JSON_TABLE(p_rows, '$[*]' COLUMNS (n FOR ORDINALITY, ident longtext CHARACTER SET utf8mb4 PATH '$[0]',
                    row_ longtext CHARACTER SET utf8mb4 PATH '$[3]', copies bigint PATH '$[4]')) AS j
            ) AS x
            STRAIGHT_JOIN mq_polled_row AS e ON e.name = v_name AND e.ident_hash = UNHEX(SHA2(x.ident, 256)) AND e.id >= v_first
                AND e.batch_key = p_batch_key AND e.copies = x.copies;
        END IF;
    END IF;
END
