-- watch_table: return the statements that create the triggers of a watched table; another call repairs them.
-- Arguments:   p_table (as SQL names it; it needs a primary key)
-- Returns:     statement: the caller must execute these, in this order, because a procedure cannot create triggers
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; executing the returned statements commits
-- Example:     CALL mq_watch_table('stock');
--
-- The triggers' definer is mq_owner: writers need no right on the queue, and dropping a user stops no writer. The server checks
-- the definer's rights on the table at each write: they are checked here first, because otherwise writers would fail. The
-- triggers evaluate key columns only: no code of a user, because a table's definition cannot contain a user's function.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_watch_table(IN p_table longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_columns, v_keys, v_new, v_old, v_queue longtext CHARACTER SET utf8mb4;
    -- Replaces a brace in a name until all placeholders are filled: it must not start a placeholder.
    DECLARE c_brace varchar(1) CHARACTER SET utf8mb4 DEFAULT CHAR(0 USING utf8mb4);
    -- One subscribed type, the usual case, calls no procedure: a call costs as much as everything else. Each variable costs
    -- time in every row, hence the inner block. The server answers MIN and MAX during planning; in an IF they would lock. With
    -- EMPTY_STRING_IS_NULL '' is NULL; LEFT(v_type, 0) is not.
    DECLARE v_trigger longtext CHARACTER SET utf8mb4 DEFAULT
        'CREATE DEFINER = ''mq_owner''@''localhost'' TRIGGER {schema}.`mq_{event}_{hash}` AFTER {event} ON {table} FOR EACH ROW
        BEGIN
            DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
            SELECT MIN(type) INTO v_type FROM {queue}mq_subscription WHERE label = {label} AND action = ''{action}'';
            IF v_type IS NOT NULL THEN BEGIN
                DECLARE v_last varchar(200) CHARACTER SET utf8mb4;
                DECLARE v_grouped, v_ring, v_fair tinyint;
                SELECT MAX(type) INTO v_last FROM {queue}mq_subscription WHERE label = {label} AND action = ''{action}'';
                IF LENGTH(v_type) = 0 OR CAST(v_type AS binary) <> CAST(v_last AS binary) THEN
                    CALL {queue}imq_send_changes({label}, ''{action}'', {row}, {old_row});
                ELSE
                    SELECT COALESCE(q.grouped, d.grouped), COALESCE(q.ring, d.ring), COALESCE(q.fair, d.fair) INTO v_grouped, v_ring, v_fair
                    FROM {queue}mq_queue AS d LEFT JOIN {queue}mq_queue AS q ON q.type = v_type WHERE d.type = LEFT(v_type, 0);
                    INSERT INTO {queue}mq_message (run_at, created_at, priority, type, body, source)
                    VALUES (UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0, v_type, CONCAT({head}, ''{action}","key":'', {row},
                        IF(CAST({old_row} AS binary) <> CAST({row} AS binary), CONCAT('',"old_key":'', {old_row}, ''}''), ''}'')),
                        CONCAT(LEFT(IF(LENGTH(@mq_application) > 0, CONVERT(@mq_application USING utf8mb4), USER()), 180), ''/'', CONNECTION_ID()));
                    IF v_grouped THEN
                        INSERT INTO {queue}mq_grouped (type, group_key, id, attempts) VALUES (v_type, LEFT(v_type, 0), LAST_INSERT_ID(), 0);
                    END IF;
                    INSERT INTO {queue}mq_ready (type, priority, run_at, id, attempts) VALUES (v_type, IF(v_ring, -32768, 0),
                        IF(v_ring OR v_fair AND NOT v_grouped, ''1000-01-01'', UTC_TIMESTAMP(6)), LAST_INSERT_ID(), 0);
                END IF;
            END;
            END IF;
        END';
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_find_table('table', p_table, v_schema, v_name, v_quoted, v_label);
    SET v_schema = IF(v_schema = '', DATABASE(), v_schema);
    CALL imq_begin_call(0, v_own);
    SELECT CONCAT('[', GROUP_CONCAT('{"n":', s.seq_in_index, ',"name":', JSON_QUOTE(CONVERT(s.column_name USING utf8mb4)), '}'
        ORDER BY s.seq_in_index), ']')
    INTO v_keys
    FROM information_schema.statistics AS s
    WHERE s.table_schema = v_schema AND s.table_name = v_name AND s.index_name = 'PRIMARY';
    IF v_keys IS NULL THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(v_label, 60), ' has no primary key: messages identify rows by it'));
    END IF;
    CALL imq_add_watched(v_schema, v_name, v_label);
    CALL imq_read_columns(v_schema, v_name, v_columns);
    CALL imq_end_call(v_own);

    CALL imq_row_json(v_columns, v_keys, 'NEW', v_new);
    CALL imq_row_json(v_columns, v_keys, 'OLD', v_old);
    -- No database name if the table is in the queue's database: a dump may be restored under another name.
    SET v_queue = IF(v_schema = DATABASE(), '', CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.'));
    -- The label is written in hexadecimal: its meaning does not depend on the SQL mode or character set.
    SET v_new = REPLACE(v_new, '{', c_brace), v_old = REPLACE(v_old, '{', c_brace),
        v_trigger = REPLACE(v_trigger, '{hash}', LEFT(SHA2(CONCAT(v_queue, v_quoted), 256), 12)),
        v_trigger = REPLACE(v_trigger, '{label}', CONCAT('_utf8mb4 0x', HEX(v_label))),
        v_trigger = REPLACE(v_trigger, '{head}', CONCAT('_utf8mb4 0x', HEX(CONCAT('{"table":', JSON_QUOTE(v_label), ',"action":"')))),
        v_trigger = REPLACE(v_trigger, '{queue}', REPLACE(v_queue, '{', c_brace)),
        v_trigger = REPLACE(v_trigger, '{table}', REPLACE(v_quoted, '{', c_brace)),
        v_trigger = REPLACE(v_trigger, '{schema}', CONCAT('`', REPLACE(REPLACE(v_schema, '`', '``'), '{', c_brace), '`'));
    SELECT CONCAT('DROP TRIGGER IF EXISTS `', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(t.trigger_name, '`', '``'), '`') AS statement
    FROM information_schema.triggers AS t
    WHERE t.event_object_schema = v_schema AND t.event_object_table = v_name AND t.trigger_name LIKE 'mq\_%'
        AND t.definer = 'mq_owner@localhost' AND t.action_statement LIKE CONCAT('%CALL ', v_queue, 'imq\_send\_changes(%')
    UNION ALL
    SELECT REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(v_trigger, '{event}', a.event), '{action}', a.action),
        '{row}', IF(a.action = 'D', v_old, v_new)), '{old_row}', IF(a.action = 'U', v_old, 'NULL')), c_brace, '{')
    FROM (SELECT 'I' AS action, 'insert' AS event UNION ALL SELECT 'U', 'update' UNION ALL SELECT 'D', 'delete') AS a;
END
