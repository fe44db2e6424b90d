-- polled_shape: the pieces of SQL that an adopted table is read and written by, made of the catalog that the caller sees.
-- Arguments:   p_table (mq_polled_settings)
-- Returns:     p_shape: a JSON object of texts, '' for none: shape (a to f), quoted; keys (the key columns for an IN), columns (a
--              JSON array of [name, class] of the columns that a row is known by), ident and bare (their values as a text:
--              expressions over the alias t, and over the table's own name), key, row (JSON, over t), status, sort, sort_as,
--              sort_by, ordered, max (columns over t; the same with names; these names), place and place_class, by_key, by_claim (how
--              to reach the index), ready, active, done, error (literals)
-- Errors:      50005 not_found, 50006 unsuitable_table, when the table or a column is not there any more, or not as it was
-- Transaction: reads the catalog
-- Example:     CALL mq_polled_shape(v_table, v_shape);
--
-- The classes: n number, u moment (seconds since 1970), d date or time, x bytes, t text; the last two in hexadecimal digits.

DROP PROCEDURE IF EXISTS mq_polled_shape;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_polled_shape(
    IN p_table longtext CHARACTER SET utf8mb4,
    OUT p_shape longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_status, v_order, v_key_index, v_claim_index, v_bad varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_idents, v_keys, v_ready, v_active, v_done, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_columns, v_known, v_chosen, v_list, v_ident, v_bare, v_key, v_row, v_place, v_class,
        v_sort, v_sort_as, v_sort_by, v_ordered longtext CHARACTER SET utf8mb4;
    DECLARE v_deletes, v_status_found tinyint;
    DECLARE v_max int;
    -- With more keys in a list than this has room for, the server would read the whole table.
    /*!80000 SET SESSION range_optimizer_max_mem_size = 0; */
    SELECT s.schema_, s.table_, s.label, s.ident_columns, s.keys_, s.order_, s.status_, s.ready, s.active, s.done, s.error, s.deletes, s.max_,
        s.key_index, s.claim_index
    INTO v_schema, v_table, v_label, v_idents, v_keys, v_order, v_status, v_ready, v_active, v_done, v_error, v_deletes, v_max, v_key_index,
        v_claim_index
    FROM JSON_TABLE(p_table, '$' COLUMNS (
        schema_ varchar(64) CHARACTER SET utf8mb4 PATH '$.schema', table_ varchar(64) CHARACTER SET utf8mb4 PATH '$.table',
        label longtext CHARACTER SET utf8mb4 PATH '$.label',
        ident_columns longtext CHARACTER SET utf8mb4 PATH '$.ident_columns', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys',
        order_ varchar(64) CHARACTER SET utf8mb4 PATH '$.order', status_ varchar(64) CHARACTER SET utf8mb4 PATH '$.status',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active',
        done longtext CHARACTER SET utf8mb4 PATH '$.done', error longtext CHARACTER SET utf8mb4 PATH '$.error',
        deletes tinyint PATH '$.deletes', max_ int PATH '$.max', key_index varchar(64) CHARACTER SET utf8mb4 PATH '$.key_index',
        claim_index varchar(64) CHARACTER SET utf8mb4 PATH '$.claim_index'
    )) AS s;
    SET v_quoted = CONCAT('`', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(v_table, '`', '``'), '`');
    CALL mq_read_columns(v_schema, v_table, v_columns);

    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(k.name, k.class) ORDER BY k.n), ']'),
        CONCAT('[', GROUP_CONCAT(JSON_OBJECT('n', k.n, 'name', k.name) ORDER BY k.n), ']'),
        GROUP_CONCAT('`t`.', k.quoted ORDER BY k.n SEPARATOR ', '),
        GROUP_CONCAT('COALESCE(', REPLACE(k.text, '{}', CONCAT('`t`.', k.quoted)), ', ''N'')' ORDER BY k.n SEPARATOR ', '','', '),
        GROUP_CONCAT('COALESCE(', REPLACE(k.text, '{}', CONCAT(v_quoted, '.', k.quoted)), ', ''N'')' ORDER BY k.n SEPARATOR ', '','', '),
        GROUP_CONCAT('`t`.', k.quoted, ' AS o', k.n ORDER BY k.n SEPARATOR ', '), GROUP_CONCAT('r.o', k.n ORDER BY k.n SEPARATOR ', ')
    INTO v_known, v_chosen, v_list, v_ident, v_bare, v_sort_as, v_sort_by
    FROM (
        SELECT j.n, c.name, CONCAT('`', REPLACE(c.name, '`', '``'), '`') AS quoted,
            CASE
                WHEN c.kind IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'float', 'bit') THEN 'n'
                WHEN c.kind IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'x'
                WHEN c.kind IN ('date', 'datetime', 'time') THEN 'd'
                WHEN c.kind = 'timestamp' THEN 'u'
                ELSE 't'
            END AS class,
            CASE
                WHEN c.kind IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'date', 'datetime', 'time')
                    THEN 'CONVERT({} USING utf8mb4)'
                WHEN c.kind = 'float' THEN 'CONVERT({} + 0e0 USING utf8mb4)'
                WHEN c.kind = 'bit' THEN 'CONVERT({} + 0 USING utf8mb4)'
                WHEN c.kind IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'HEX({})'
                WHEN c.kind = 'timestamp' THEN 'UNIX_TIMESTAMP({})'
                ELSE 'HEX(CONVERT({} USING utf8mb4))'
            END AS text
        FROM JSON_TABLE(v_idents, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(64) CHARACTER SET utf8mb4 PATH '$[0]',
            kind varchar(40) CHARACTER SET utf8mb4 PATH '$[1]', scale int PATH '$[2]')) AS j
        JOIN JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
            kind varchar(40) CHARACTER SET utf8mb4 PATH '$.kind', scale int PATH '$.scale')) AS c
            ON CAST(j.name AS binary) = CAST(c.name AS binary) AND j.kind = c.kind AND j.scale = c.scale
    ) AS k;
    SELECT CONCAT('`t`.`', REPLACE(c.name, '`', '``'), '`'),
        CASE
            WHEN c.kind IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'float', 'bit') THEN 'n'
            WHEN c.kind IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'x'
            WHEN c.kind IN ('date', 'datetime', 'time') THEN 'd'
            WHEN c.kind = 'timestamp' THEN 'u'
            ELSE 't'
        END
    INTO v_ordered, v_class
    FROM JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
        kind varchar(40) CHARACTER SET utf8mb4 PATH '$.kind')) AS c
    WHERE CAST(c.name AS binary) = CAST(COALESCE(v_order, IF(JSON_LENGTH(v_keys) = 1, JSON_UNQUOTE(JSON_EXTRACT(v_keys, '$[0]')), '')) AS binary);
    SELECT COUNT(*) INTO v_status_found
    FROM JSON_TABLE(v_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS c
    WHERE CAST(c.name AS binary) = CAST(v_status AS binary);
    IF v_order IS NOT NULL AND v_ordered IS NULL OR v_status IS NOT NULL AND NOT v_status_found
        OR COALESCE(JSON_LENGTH(v_known), 0) < JSON_LENGTH(v_idents)
    THEN
        CALL mq_raise_error('unsuitable_table', CONCAT(LEFT(v_label, 40),
            ' has other columns than it was adopted with: release_table, adopt_table'));
    END IF;
    SET v_sort = v_list;
    IF v_order IS NOT NULL THEN
        SET v_sort = v_ordered, v_sort_as = CONCAT(v_ordered, ' AS o1'), v_sort_by = 'r.o1';
    ELSEIF v_keys IS NULL THEN
        SET v_sort = '', v_sort_as = '0 AS o1', v_sort_by = 'r.o1';
    END IF;
    SET v_place = CASE v_class WHEN 't' THEN CONCAT('HEX(CONVERT(', v_ordered, ' USING utf8mb4))')
        WHEN 'x' THEN CONCAT('HEX(', v_ordered, ')') WHEN 'n' THEN CONCAT('CONVERT(', v_ordered, ' + 0 USING utf8mb4)')
        WHEN 'u' THEN CONCAT('UNIX_TIMESTAMP(', v_ordered, ')') ELSE CONCAT('CONVERT(', v_ordered, ' USING utf8mb4)') END;
    IF JSON_LENGTH(v_known) > 1 THEN
        SET v_ident = CONCAT('CONCAT(', v_ident, ')'), v_bare = CONCAT('CONCAT(', v_bare, ')');
    END IF;
    CALL mq_row_json(v_columns, v_chosen, 't', v_key);
    CALL mq_row_json(v_columns, NULL, 't', v_row);
    SET p_shape = JSON_OBJECT('shape', IF(v_status IS NOT NULL, IF(v_keys IS NULL, 'c', 'a'), IF(v_deletes, IF(v_keys IS NULL, 'f', 'e'),
            IF(v_keys IS NULL, 'd', 'b'))),
        'quoted', v_quoted,
        'columns', v_known,
        'keys', IF(v_keys IS NULL, '', CONCAT('(', v_list, ')')),
        'ident', v_ident,
        'bare', v_bare,
        'key', v_key,
        'row', v_row,
        'max', v_max,
        'status', COALESCE(CONCAT('`', REPLACE(v_status, '`', '``'), '`'), ''),
        'sort', v_sort,
        'sort_as', v_sort_as,
        'sort_by', v_sort_by,
        'ordered', COALESCE(v_ordered, ''),
        'place', COALESCE(v_place, ''),
        'place_class', COALESCE(v_class, ''),
        'by_key', IF(v_key_index IS NULL, '', CONCAT('FORCE INDEX (`', REPLACE(v_key_index, '`', '``'), '`)')),
        'by_claim', IF(v_claim_index IS NULL, '', CONCAT('FORCE INDEX (`', REPLACE(v_claim_index, '`', '``'), '`)')),
        'ready', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_ready), ''''), ''),
        'active', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_active), ''''), ''),
        'done', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_done), ''''), ''),
        'error', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_error), ''''), ''));
END//

DELIMITER ;
