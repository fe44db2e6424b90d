-- write_rows: set the status of the rows of entries, or delete them; row by row when one statement for all fails.
-- Arguments:   p_shape (from imq_polled_shape), p_items (a JSON array of [id, ident, active, attempts]), p_from and p_to
--              (literals of the status that the queue left and of the new one, '' for NULL), p_do (set, delete, or lock:
--              only lock)
-- Returns:     p_written: a JSON array of the entries whose rows were written; p_refused: the items that the table refused,
--              as fail_rows takes them; NULL when there are none. The rows of all others are gone
-- Transaction: joins the caller's; waits for transactions that have locked these rows

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_write_rows(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    IN p_from longtext CHARACTER SET utf8mb4, IN p_to longtext CHARACTER SET utf8mb4,
    IN p_do varchar(6) CHARACTER SET ascii, OUT p_written longtext CHARACTER SET utf8mb4,
    OUT p_refused longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_keys, v_status, v_where, v_list, v_literals, v_each, v_members, v_refusals, v_text, v_condition,
        v_ids longtext CHARACTER SET utf8mb4;
    DECLARE v_lock longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT CONCAT(''['', GROUP_CONCAT(CONCAT(''"'', {ident}, ''"'')), '']'') INTO @mq_found
        FROM {table} AS t {by_key} WHERE {keys} IN ({literals}) {where} FOR UPDATE';
    DECLARE v_write longtext CHARACTER SET utf8mb4 DEFAULT CASE p_do
        WHEN 'delete' THEN 'DELETE t FROM {table} AS t {by_key} WHERE {keys} IN ({literals}) {where}'
        ELSE 'UPDATE {table} AS t {by_key} SET {status} = {to} WHERE {keys} IN ({literals}) {where}' END;
    -- Of equal rows, as many as are claimed.
    DECLARE v_write_each longtext CHARACTER SET utf8mb4 DEFAULT CASE p_do
        WHEN 'delete' THEN 'DELETE FROM {table} WHERE {condition} {where} LIMIT {copies}'
        WHEN 'set' THEN 'UPDATE {table} SET {status} = {to} WHERE {condition} {where} LIMIT {copies}'
        ELSE 'SELECT COUNT(*) INTO @mq_found
            FROM (SELECT 1 FROM {table} WHERE {condition} {where} LIMIT {copies} FOR UPDATE) AS x' END;
    DECLARE v_count, v_copies bigint;
    DECLARE v_number int;
    DECLARE v_conditions int DEFAULT 1;
    DECLARE v_end tinyint DEFAULT 0;
    DECLARE c_groups CURSOR FOR
        -- No identity contains a brace: the error takes their place.
        SELECT j.ident, COUNT(*), GROUP_CONCAT(j.id ORDER BY j.id), GROUP_CONCAT('[', j.id, ',', JSON_QUOTE(j.ident), ',',
            COALESCE(j.active, 'null'), ',', COALESCE(j.attempts, 'null'), ',null,{}]' ORDER BY j.id)
        FROM JSON_TABLE(v_list, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]', attempts int PATH '$[3]')) AS j
        GROUP BY j.ident, IF(v_keys = '', 0, j.id)
        ORDER BY MIN(j.id);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    SELECT s.columns_, s.keys_, s.status INTO v_columns, v_keys, v_status
    FROM JSON_TABLE(p_shape, '$' COLUMNS (columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns',
        keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys', status longtext CHARACTER SET utf8mb4 PATH '$.status')) AS s;
    -- Only literals and texts of this file are filled in here: imq_run_template fills in the names last.
    SET v_where = IF(v_status = '', '', IF(p_from = '', 'AND {status} IS NULL', CONCAT('AND {status} = ', p_from))),
        v_lock = REPLACE(v_lock, '{where}', v_where),
        v_write = REPLACE(REPLACE(v_write, '{where}', v_where), '{to}', IF(p_to = '', 'NULL', p_to)),
        v_write_each = REPLACE(REPLACE(v_write_each, '{where}', v_where), '{to}', IF(p_to = '', 'NULL', p_to)),
        v_list = p_items, p_written = NULL, p_refused = NULL;

    IF v_keys <> '' THEN
        CALL imq_key_literals(v_columns, p_items, v_literals);
        CALL imq_run_template(p_shape, REPLACE(v_lock, '{literals}', v_literals), v_count);
        -- UNION ALL with a window function: a join would read JSON_TABLE once per row.
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(m.id, m.ident, m.active, m.attempts) ORDER BY m.id), ']'),
            CONCAT('[', GROUP_CONCAT(m.id ORDER BY m.id), ']')
        INTO v_list, v_ids
        FROM (
            SELECT u.id, u.ident, u.active, u.attempts, MAX(u.found) OVER (PARTITION BY u.ident) AS found
            FROM (
                SELECT j.id, j.ident, j.active, j.attempts, 0 AS found
                FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
                    active tinyint PATH '$[2]', attempts int PATH '$[3]')) AS j
                UNION ALL
                SELECT NULL, f.ident, NULL, NULL, 1
                FROM JSON_TABLE(COALESCE(@mq_found, '[]'), '$[*]' COLUMNS (ident longtext CHARACTER SET utf8mb4 PATH '$')) AS f
            ) AS u
        ) AS m
        WHERE m.id IS NOT NULL AND m.found = 1;
        IF v_list IS NOT NULL AND p_do <> 'lock' THEN
            IF JSON_LENGTH(v_list) < JSON_LENGTH(p_items) THEN
                CALL imq_key_literals(v_columns, v_list, v_literals);
            END IF;
            BEGIN
                DECLARE EXIT HANDLER FOR SQLEXCEPTION
                BEGIN
                    -- On MySQL read the last condition: loading a trigger for the first time may add warnings before the
                    -- error. On MariaDB read the first: the server adds the place of the error after it.
                    /*!80000 GET DIAGNOSTICS v_conditions = NUMBER; */
                    GET DIAGNOSTICS CONDITION v_conditions v_number = MYSQL_ERRNO;
                    IF v_number IN (1020, 1044, 1142, 1143, 1176, 1205, 1213, 1290, 1317, 1370, 1792, 1836, 1969, 3024, 3572) THEN
                        RESIGNAL;
                    END IF;
                    -- The table refuses at least one row: the loop below finds out which.
                END;
                CALL imq_run_template(p_shape, REPLACE(v_write, '{literals}', v_literals), v_count);
                SET p_written = v_ids, v_list = NULL;
            END;
        ELSEIF v_list IS NOT NULL THEN
            SET p_written = v_ids, v_list = NULL;
        END IF;
    END IF;

    IF v_list IS NOT NULL THEN
        OPEN c_groups;
        SET v_end = 0;
        FETCH c_groups INTO v_each, v_copies, v_members, v_refusals;
        WHILE NOT v_end DO
            CALL imq_row_condition(p_shape, v_each, v_condition);
            SET v_text = NULL;
            BEGIN
                DECLARE EXIT HANDLER FOR SQLEXCEPTION
                BEGIN
                    /*!80000 GET DIAGNOSTICS v_conditions = NUMBER; */
                    GET DIAGNOSTICS CONDITION v_conditions v_number = MYSQL_ERRNO, v_text = MESSAGE_TEXT;
                    IF v_number IN (1020, 1044, 1142, 1143, 1176, 1205, 1213, 1290, 1317, 1370, 1792, 1836, 1969, 3024, 3572) THEN
                        RESIGNAL;
                    END IF;
                END;
                CALL imq_run_template(p_shape,
                    REPLACE(REPLACE(v_write_each, '{copies}', v_copies), '{condition}', v_condition), v_count);
                SET v_count = IF(p_do = 'lock', @mq_found, v_count);
            END;
            IF v_text IS NOT NULL THEN
                SET p_refused = CONCAT_WS(',', p_refused, REPLACE(v_refusals, '{}', JSON_QUOTE(v_text)));
            ELSEIF v_count > 0 THEN
                SET p_written = CONCAT(COALESCE(CONCAT(p_written, ','), ''), SUBSTRING_INDEX(v_members, ',', v_count));
            END IF;
            SET v_end = 0;
            FETCH c_groups INTO v_each, v_copies, v_members, v_refusals;
        END WHILE;
        CLOSE c_groups;
        SET p_written = CONCAT('[', p_written, ']'), p_refused = CONCAT('[', p_refused, ']');
    END IF;
    SET @mq_found = NULL;
END
