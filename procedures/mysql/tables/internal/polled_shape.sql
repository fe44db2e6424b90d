-- polled_shape: return the SQL fragments that read and write a polling table, from the catalog that the caller sees.
-- Returns:     p_shape: a JSON object of texts: shape (a to f); columns (a JSON array of [name, class] of the columns that
--              identify a row), place_class, max; ready, active, done, error (literals, '' for NULL); and placeholders for
--              imq_run_template: table, keys (the key columns for an IN, '' for none), ident and bare (the identity as text,
--              over the alias t and over the table's own name), key, row (JSON, over t), order (the column over t), place
--              (its text), status, is_ready and is_active (conditions), sort (ORDER BY), sort_as and sort_by (its columns
--              with aliases; these aliases), by_key and by_claim (index hints)
--
-- By class (see imq_read_columns), timestamps are written in seconds since 1970, and bytes and texts in hexadecimal.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_polled_shape(
    IN p_table longtext CHARACTER SET utf8mb4, OUT p_shape longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_status, v_order, v_key_index, v_claim_index varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_idents, v_keys, v_ready, v_active, v_done, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_columns, v_known, v_chosen, v_list, v_ident, v_bare, v_key, v_row, v_place, v_class, v_sort, v_sort_as,
        v_sort_by, v_ordered longtext CHARACTER SET utf8mb4;
    DECLARE v_deletes, v_status_found tinyint;
    DECLARE v_max int;
    -- No limit: with a long list of keys the server would otherwise scan the whole table.
    /*!80000 SET SESSION range_optimizer_max_mem_size = 0; */
    SELECT s.schema_, s.table_, s.label, s.ident_columns, s.keys_, s.order_, s.status_, s.ready, s.active, s.done, s.error,
        s.deletes, s.max_, s.key_index, s.claim_index
    INTO v_schema, v_table, v_label, v_idents, v_keys, v_order, v_status, v_ready, v_active, v_done, v_error, v_deletes, v_max,
        v_key_index, v_claim_index
    FROM JSON_TABLE(p_table, '$' COLUMNS (schema_ varchar(64) CHARACTER SET utf8mb4 PATH '$.schema',
        table_ varchar(64) CHARACTER SET utf8mb4 PATH '$.table', label longtext CHARACTER SET utf8mb4 PATH '$.label',
        ident_columns longtext CHARACTER SET utf8mb4 PATH '$.ident_columns',
        keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys', order_ varchar(64) CHARACTER SET utf8mb4 PATH '$.order',
        status_ varchar(64) CHARACTER SET utf8mb4 PATH '$.status', ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
        active longtext CHARACTER SET utf8mb4 PATH '$.active', done longtext CHARACTER SET utf8mb4 PATH '$.done',
        error longtext CHARACTER SET utf8mb4 PATH '$.error', deletes tinyint PATH '$.deletes', max_ int PATH '$.max',
        key_index varchar(64) CHARACTER SET utf8mb4 PATH '$.key_index',
        claim_index varchar(64) CHARACTER SET utf8mb4 PATH '$.claim_index')) AS s;
    SET v_quoted = CONCAT('`', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(v_table, '`', '``'), '`');
    CALL imq_read_columns(v_schema, v_table, v_columns);
    SELECT MAX(CAST(c.name AS binary) = CAST(v_status AS binary)) INTO v_status_found
    FROM JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS c;
    SELECT CONCAT('`t`.`', REPLACE(c.name, '`', '``'), '`'), c.class INTO v_ordered, v_class
    FROM JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
        class varchar(1) CHARACTER SET utf8mb4 PATH '$.class')) AS c
    WHERE CAST(c.name AS binary) = CAST(COALESCE(v_order,
        IF(JSON_LENGTH(v_keys) = 1, JSON_UNQUOTE(JSON_EXTRACT(v_keys, '$[0]')), ''))
        AS binary);
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(k.name, k.class) ORDER BY k.n), ']'),
        CONCAT('[', GROUP_CONCAT(JSON_OBJECT('n', k.n, 'name', k.name) ORDER BY k.n), ']'),
        GROUP_CONCAT('`t`.', k.quoted ORDER BY k.n SEPARATOR ', '),
        GROUP_CONCAT('COALESCE(', REPLACE(k.text, '{}', CONCAT('`t`.', k.quoted)), ', ''N'')' ORDER BY k.n SEPARATOR ', '','', '),
        GROUP_CONCAT('COALESCE(', REPLACE(k.text, '{}', CONCAT(v_quoted, '.', k.quoted)),
            ', ''N'')' ORDER BY k.n SEPARATOR ', '','', '),
        GROUP_CONCAT('`t`.', k.quoted, ' AS o', k.n ORDER BY k.n SEPARATOR ', '),
        GROUP_CONCAT('r.o', k.n ORDER BY k.n SEPARATOR ', ')
    INTO v_known, v_chosen, v_list, v_ident, v_bare, v_sort_as, v_sort_by
    FROM (
        SELECT j.n, c.name, c.class, CONCAT('`', REPLACE(c.name, '`', '``'), '`') AS quoted,
            CASE
                WHEN c.kind = 'float' THEN 'CONVERT({} + 0e0 USING utf8mb4)'
                WHEN c.kind = 'bit' THEN 'CONVERT({} + 0 USING utf8mb4)'
                WHEN c.class IN ('n', 'd') THEN 'CONVERT({} USING utf8mb4)'
                WHEN c.class = 'x' THEN 'HEX({})'
                WHEN c.class = 'u' THEN 'UNIX_TIMESTAMP({})'
                ELSE 'HEX(CONVERT({} USING utf8mb4))'
            END AS text
        FROM JSON_TABLE(v_idents, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(64) CHARACTER SET utf8mb4 PATH '$[0]',
            kind varchar(40) CHARACTER SET utf8mb4 PATH '$[1]', scale int PATH '$[2]')) AS j
        JOIN JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
            kind varchar(40) CHARACTER SET utf8mb4 PATH '$.kind', scale int PATH '$.scale',
            class varchar(1) CHARACTER SET utf8mb4 PATH '$.class')) AS c
            ON CAST(j.name AS binary) = CAST(c.name AS binary) AND j.kind = c.kind AND j.scale = c.scale
    ) AS k;
    IF v_order IS NOT NULL AND v_ordered IS NULL OR v_status IS NOT NULL AND NOT COALESCE(v_status_found, 0)
        OR COALESCE(JSON_LENGTH(v_known), 0) < JSON_LENGTH(v_idents)
    THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(v_label, 40),
            ' has other columns than it was adopted with: unadopt_table, adopt_table'));
    END IF;

    SET v_sort = v_list;
    IF v_order IS NOT NULL THEN
        SET v_sort = v_ordered, v_sort_as = CONCAT(v_ordered, ' AS o1'), v_sort_by = 'r.o1';
    ELSEIF v_keys IS NULL THEN
        SET v_sort = NULL, v_sort_as = '0 AS o1', v_sort_by = 'r.o1';
    END IF;
    SET v_place = CASE v_class WHEN 't' THEN CONCAT('HEX(CONVERT(', v_ordered, ' USING utf8mb4))')
        WHEN 'x' THEN CONCAT('HEX(', v_ordered, ')') WHEN 'n' THEN CONCAT('CONVERT(', v_ordered, ' + 0 USING utf8mb4)')
        WHEN 'u' THEN CONCAT('UNIX_TIMESTAMP(', v_ordered, ')') ELSE CONCAT('CONVERT(', v_ordered, ' USING utf8mb4)') END;
    IF JSON_LENGTH(v_known) > 1 THEN
        SET v_ident = CONCAT('CONCAT(', v_ident, ')'), v_bare = CONCAT('CONCAT(', v_bare, ')');
    END IF;
    CALL imq_row_json(v_columns, v_chosen, 't', v_key);
    CALL imq_row_json(v_columns, NULL, 't', v_row);
    SET v_status = CONCAT('`', REPLACE(v_status, '`', '``'), '`'), v_ready = CONCAT('_utf8mb4 x''', HEX(v_ready), ''''),
        v_active = CONCAT('_utf8mb4 x''', HEX(v_active), ''''), v_done = CONCAT('_utf8mb4 x''', HEX(v_done), ''''),
        v_error = CONCAT('_utf8mb4 x''', HEX(v_error), '''');
    SET p_shape = JSON_OBJECT('shape',
            IF(v_status IS NULL, IF(v_deletes, IF(v_keys IS NULL, 'f', 'e'), IF(v_keys IS NULL, 'd', 'b')),
                IF(v_keys IS NULL, 'c', 'a')),
        'columns', v_known, 'place_class', COALESCE(v_class, ''), 'max', v_max, 'ready', COALESCE(v_ready, ''),
        'active', COALESCE(v_active, ''), 'done', COALESCE(v_done, ''), 'error', COALESCE(v_error, ''),
        'table', v_quoted, 'keys', IF(v_keys IS NULL, '', CONCAT('(', v_list, ')')), 'ident', v_ident, 'bare', v_bare,
        'key', v_key, 'row', v_row, 'order', COALESCE(v_ordered, ''), 'place', COALESCE(v_place, 'NULL'),
        'status', COALESCE(v_status, ''),
        'is_ready', COALESCE(CONCAT(v_status, COALESCE(CONCAT(' = ', v_ready), ' IS NULL')), 'TRUE'),
        'is_active', COALESCE(CONCAT(v_status, ' = ', v_active), 'TRUE'),
        'sort', COALESCE(CONCAT('ORDER BY ', v_sort), ''), 'sort_as', v_sort_as, 'sort_by', v_sort_by,
        'by_key', COALESCE(CONCAT('FORCE INDEX (`', REPLACE(v_key_index, '`', '``'), '`)'), ''),
        'by_claim', COALESCE(CONCAT('FORCE INDEX (`', REPLACE(v_claim_index, '`', '``'), '`)'), ''));
END
