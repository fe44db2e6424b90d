-- pick_rows: claim rows of an adopted table: those that wait for another attempt first, then new ones.
-- Arguments:   p_name, p_size, p_batch_key (of the new batch)
-- Returns:     nothing: what was claimed stands in mq_polled_row, and as it was before in mq_polled_taken. What has used up its
--              attempts or was refused by the table stands in mq_polled_write: the caller settles that
-- Errors:      as polled_shape
-- Transaction: joins the caller's, which is NO WAIT and has the row of mq_polled
-- Example:     EXECUTE PROCEDURE mq_pick_rows('orders', 10, v_key);
--
-- The statement is put together for the table and run once a claim, by use_table, which has the rights. Each row is locked or
-- changed in a block of its own, so what another transaction has locked is passed over before Firebird 5 too.
-- Entries are looked for after the row was read and before it is locked: a row whose claim was finished meanwhile is gone or has
-- another status by then.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pick_rows (
    p_name mq_name,
    p_size integer,
    p_batch_key mq_key
)
AS
-- A look from the very start is made so often, in milliseconds.
DECLARE c_look integer = 1000;
DECLARE v_kind varchar(1) CHARACTER SET ASCII;
DECLARE v_counted smallint;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_status varchar(130) CHARACTER SET UTF8;
DECLARE v_order varchar(130) CHARACTER SET UTF8;
DECLARE v_index varchar(130) CHARACTER SET UTF8;
DECLARE v_sorting mq_text;
DECLARE v_place mq_text;
DECLARE v_declares mq_text;
DECLARE v_parse mq_text;
DECLARE v_matches mq_text;
DECLARE v_ident mq_text;
DECLARE v_content mq_text;
DECLARE v_json mq_text;
DECLARE v_id bigint;
DECLARE v_ready mq_status;
DECLARE v_active mq_status;
DECLARE v_late integer;
DECLARE v_from mq_ident;
DECLARE v_looked_at timestamp;
DECLARE v_now timestamp;
DECLARE v_status_type varchar(300) CHARACTER SET UTF8;
DECLARE v_order_type varchar(300) CHARACTER SET UTF8;
DECLARE v_message varchar(200) CHARACTER SET UTF8;
DECLARE v_conflict varchar(200) CHARACTER SET UTF8;
DECLARE v_take mq_text;
DECLARE v_new mq_text;
DECLARE v_walk mq_text;
DECLARE v_text mq_text;
BEGIN
    EXECUTE PROCEDURE mq_polled_shape(p_name)
        RETURNING_VALUES v_kind, v_counted, v_quoted, v_status, v_order, v_index, v_sorting, v_place, v_declares, v_parse,
            v_matches, v_ident, v_content, v_json;
    v_now = mq_utc_now();
    SELECT id, ready_value, active_value, late_seconds, place, looked_at FROM mq_polled WHERE name = :p_name
    INTO v_id, v_ready, v_active, v_late, v_from, v_looked_at;
    v_status_type = COALESCE('TYPE OF COLUMN ' || v_quoted || '.' || v_status, 'smallint');
    v_order_type = COALESCE('TYPE OF COLUMN ' || v_quoted || '.' || v_order, 'smallint');
    -- deadlock, lock_conflict, update_conflict, random, no_cur_rec. Not by a WHEN of their own: of several that fit, the engine
    -- runs one after the other, and WHEN ANY always fits.
    v_conflict = 'IF (GDSCODE IN (335544336, 335544345, 335544451, 335544382, 335544348)) THEN ';
    v_message = mq_error_expression();

    v_text = 'EXECUTE BLOCK AS '
        || 'DECLARE v_name mq_name; DECLARE v_reader mq_name; DECLARE v_max integer; DECLARE v_left integer = ' || p_size
        || '; DECLARE v_batch mq_key = ''' || p_batch_key || '''; DECLARE v_now timestamp = ''' || v_now || '''; '
        || 'DECLARE v_before bigint; DECLARE v_id bigint; DECLARE v_attempts smallint; DECLARE v_active smallint; '
        || 'DECLARE v_ident mq_ident; DECLARE v_hash bigint; DECLARE v_held integer; DECLARE v_seen integer; DECLARE v_mine '
        || 'integer; '
        || 'DECLARE v_place char(8) CHARACTER SET OCTETS; DECLARE v_json mq_text; DECLARE v_content mq_text; DECLARE v_error '
        || 'mq_error; '
        || 'DECLARE v_at integer; DECLARE v_end integer; DECLARE v_length integer; DECLARE v_free smallint; '
        || 'DECLARE v_seen_at timestamp; DECLARE v_from_place mq_ident; DECLARE v_from_ident mq_ident; DECLARE v_from_copies '
        || 'integer; '
        || 'DECLARE v_last_ident mq_ident; DECLARE v_copies integer = 0; '
        || 'DECLARE s_ready ' || v_status_type || '; DECLARE s_active ' || v_status_type || '; DECLARE s_left ' || v_status_type
        || '; DECLARE o_from ' || v_order_type || '; DECLARE o_to ' || v_order_type || '; DECLARE o_this ' || v_order_type
        || '; DECLARE o_last ' || v_order_type || '; '
        || v_declares || 'BEGIN SELECT name, reader, max_attempts, '
        || IIF(v_kind = 'S', 'ready_value, active_value', 'NULL, NULL') || ', place, place_ident, copies, place'
        || ' FROM mq_polled WHERE id = ' || v_id
        || ' INTO v_name, v_reader, v_max, s_ready, s_active, v_from_place, v_from_ident, v_from_copies'
        || ', v_last_ident; v_last_ident = NULL; v_before = GEN_ID(mq_polled_row_id, 0); ';

    -- The row at v_place: 1 when it is ours now, 0 when it is locked or was changed, 2 when the table refuses it.
    v_take = 'v_mine = 0; v_error = NULL; BEGIN FOR SELECT ' || v_json || ' AS json, ' || v_content || ' AS content FROM '
        || v_quoted
        || ' AS r WHERE r.RDB$DB_KEY = :v_place' || '#check '
        || IIF(v_kind = 'K', 'INTO v_json, v_content AS CURSOR c', mq_row_lock())
        || ' DO BEGIN '
        || IIF(v_active IS NULL, '', '#write UPDATE ' || v_quoted || ' SET ' || v_status || ' = :s_active WHERE CURRENT OF c; ')
        || 'v_mine = 1; END WHEN ANY DO BEGIN ' || v_conflict || 'v_mine = 0; ELSE BEGIN v_mine = 2; v_error = ' || v_message
        || '; END END END ';

    -- What waits for another attempt. Of equal rows, those that others hold are passed over.
    v_text = v_text || 'FOR SELECT p.id, p.ident, p.ident_hash, p.attempts, p.active FROM mq_polled_row AS p '
        || 'WHERE p.name = :v_name AND p.state = ''N'' AND p.run_at <= :v_now PLAN (p ORDER mq_polled_row_due) '
        || 'ORDER BY p.name, p.state, p.run_at, p.id INTO v_id, v_ident, v_hash, v_attempts, v_active DO BEGIN '
        || 'IF (v_left <= 0) THEN LEAVE; ' || v_parse || 'v_mine = -1; v_held = 0; '
        || IIF(v_kind = 'S', 's_left = IIF(v_active = 1' || IIF(v_active IS NULL, ' AND 1 = 0', '')
        || ', s_active, s_ready); ', '')
        || IIF(v_counted = 1 AND v_kind <> 'K', 'SELECT COUNT(*) FROM mq_polled_row AS p WHERE p.name = :v_name AND '
            || 'p.ident_hash = :v_hash AND p.ident = :v_ident AND p.active = :v_active AND p.state IN (''A'''
            || IIF(v_kind = 'D', ', ''E''', '') || ') INTO v_held; ', '')
        || 'FOR SELECT r.RDB$DB_KEY FROM ' || v_quoted || ' AS r WHERE ' || v_matches
        || IIF(v_kind = 'S', ' AND r.' || v_status || ' IS NOT DISTINCT FROM :s_left', '') || ' INTO v_place DO BEGIN '
        || 'IF (v_held > 0) THEN v_held = v_held - 1; ELSE BEGIN IF (v_attempts >= v_max) THEN v_mine = 3; ELSE BEGIN '
        || REPLACE(REPLACE(v_take, '#check', ' AND ' || v_matches
            || IIF(v_kind = 'S', ' AND r.' || v_status
            || ' IS NOT DISTINCT FROM :s_left', '')), '#write', 'IF (v_active = 0) THEN')
        || 'END IF (v_mine > 0) THEN LEAVE; END END '
        || 'IF (v_mine = -1) THEN DELETE FROM mq_polled_row WHERE id = :v_id; '
        || 'ELSE IF (v_mine = 3) THEN INSERT INTO mq_polled_write (id, kind, retry, error) '
        || 'SELECT id, ''F'', -1, error FROM mq_polled_row WHERE id = :v_id; '
        || 'ELSE IF (v_mine > 0) THEN BEGIN UPDATE mq_polled_row SET state = ''A'', batch_key = :v_batch, attempts = attempts '
        || '+ 1, '
        || 'reader = :v_reader' || IIF(v_active IS NULL, '', ', active = IIF(:v_mine = 1, 1, active)') || ' WHERE id = :v_id; '
        || 'IF (v_mine = 1) THEN BEGIN UPDATE OR INSERT INTO mq_polled_taken (id, content) VALUES (:v_id, :v_content); '
        || 'v_left = v_left - 1; END ELSE INSERT INTO mq_polled_write (id, kind, error) '
        || 'VALUES (:v_id, ''F'', :v_error); END END ';

    -- A new row at v_place, whose identity is v_ident.
    v_new = REPLACE(REPLACE(v_take, '#check', ' AND ' || v_ident || ' = :v_ident'
            || IIF(v_kind <> 'S', '', ' AND r.' || v_status || IIF(v_ready IS NULL, ' IS NULL', ' = :s_ready'))), '#write', '')
        || 'IF (v_mine > 0) THEN BEGIN ' || IIF(v_kind = 'S' AND v_counted = 0, 'DELETE FROM mq_polled_row WHERE name = '
        || ':v_name AND '
            || 'ident_hash = :v_hash AND ident = :v_ident; ', '')
        || 'v_id = NEXT VALUE FOR mq_polled_row_id; INSERT INTO mq_polled_row (id, batch_key, '
        || 'run_at, ident_hash, attempts, active, state, name, ident, key_json, reader) VALUES (:v_id, :v_batch, :v_now, '
        || ':v_hash, 1, '
        || IIF(v_active IS NULL, '0', 'IIF(:v_mine = 1, 1, 0)') || ', ''A'', :v_name, :v_ident, '
        || 'COALESCE(:v_json, ''{}''), :v_reader); IF (v_mine = 1) THEN BEGIN '
        || 'INSERT INTO mq_polled_taken (id, content) VALUES (:v_id, :v_content); v_left = v_left - 1; '
        || 'END ELSE INSERT INTO mq_polled_write (id, kind, error) VALUES (:v_id, ''F'', :v_error); ';

    IF (v_kind = 'K') THEN
    BEGIN
        IF (v_from IS NOT NULL) THEN
            v_text = v_text || 'o_from = CAST(v_from_place AS ' || v_order_type || '); ';
        -- The highest value there is, at most once a second; what lay below it late_seconds ago is settled.
        IF (v_late > 0) THEN
            v_text = v_text || 'SELECT seen_at, place FROM mq_polled_mark WHERE name = :v_name ORDER BY name DESC, seen_at '
                || 'DESC ROWS 1 '
                || 'INTO v_seen_at, v_last_ident; IF (v_seen_at IS NULL OR v_seen_at NOT BETWEEN DATEADD(-'
                || MAXVALUE(1000, CAST(v_late AS bigint) * 100)
                || ' MILLISECOND TO v_now) AND DATEADD(1 MINUTE TO v_now)) THEN BEGIN '
                || 'o_last = CAST(v_last_ident AS ' || v_order_type || '); '
                || 'IF (o_last IS NULL) THEN SELECT MAX(r.' || v_order || ') FROM ' || v_quoted || ' AS r INTO o_to; '
                || 'ELSE SELECT MAX(r.' || v_order || ') FROM ' || v_quoted || ' AS r WHERE r.' || v_order
                || ' >= :o_last INTO o_to; '
                || 'o_to = COALESCE(o_to, o_last); IF (o_to IS NOT NULL) THEN INSERT INTO mq_polled_mark (name, seen_at, place) '
                || 'SELECT :v_name, :v_now, ' || REPLACE(v_place, 'r.' || v_order, 'r.x') || ' FROM (SELECT CAST(:o_to AS '
                || v_order_type || ') AS x FROM rdb$database) AS r; END '
                || 'v_last_ident = NULL; o_to = NULL; v_seen_at = NULL; '
                || 'SELECT seen_at, place FROM mq_polled_mark WHERE name = :v_name AND seen_at <= DATEADD(-' || v_late
                || ' SECOND TO :v_now) ORDER BY seen_at DESC ROWS 1 INTO v_seen_at, v_last_ident; '
                || 'o_last = CAST(v_last_ident AS ' || v_order_type || '); v_last_ident = NULL; '
                || 'DELETE FROM mq_polled_mark WHERE name = :v_name AND seen_at < :v_seen_at; '
                || 'IF (o_last IS NULL) THEN v_left = 0; ';
        -- Up to the value of the last row wanted, so that a sort is of no more than these and their equals.
        v_walk = IIF(v_from IS NULL, '', 'r.' || v_order || ' #than :o_from')
            || IIF(v_late > 0, IIF(v_from IS NULL, '', ' AND ') || 'r.' || v_order || ' <= :o_last', '');
        v_walk = IIF(v_walk = '', '', ' WHERE ' || v_walk);
        v_text = v_text || 'IF (v_left > 0) THEN BEGIN o_to = NULL; SELECT r.' || v_order || ' FROM ' || v_quoted || ' AS r'
            || REPLACE(v_walk, '#than', '>') || COALESCE(' PLAN (r ORDER ' || v_index || ')', '') || ' ORDER BY r.' || v_order
            || ' ROWS :v_left TO :v_left INTO o_to; '
            || IIF(v_late > 0, 'o_to = COALESCE(o_to, o_last); ',
                'IF (o_to IS NULL) THEN SELECT MAX(r.' || v_order || ') FROM ' || v_quoted || ' AS r'
                    || REPLACE(v_walk, '#than', '>=')
                || ' INTO o_to; ')
            || 'o_last = NULL; FOR SELECT r.RDB$DB_KEY, r.' || v_order || ', ' || v_ident || ' FROM ' || v_quoted
            || ' AS r WHERE r.'
            || v_order || ' <= :o_to' || IIF(v_from IS NULL, '', ' AND r.' || v_order || ' >= :o_from')
            || ' ORDER BY 2, 3 INTO v_place, o_this, v_ident DO BEGIN '
            || 'IF (v_left <= 0) THEN LEAVE; IF (o_this = o_last AND v_ident = v_last_ident) THEN v_copies = v_copies + 1; '
            || 'ELSE v_copies = 1; o_last = o_this; v_last_ident = v_ident; '
            || IIF(v_from IS NULL, '', 'IF (o_this > o_from OR v_ident > v_from_ident OR v_ident = v_from_ident AND '
                || 'v_copies > v_from_copies) THEN ')
            || 'BEGIN v_hash = HASH(v_ident); ' || v_new || 'UPDATE mq_polled SET place = ('
            || 'SELECT ' || REPLACE(v_place, 'r.' || v_order, 'r.x') || ' FROM (SELECT CAST(:o_this AS ' || v_order_type
            || ') AS x FROM rdb$database) AS r), place_ident = :v_ident, copies = :v_copies WHERE name = :v_name; END END END '
            || 'END ';
    END
    ELSE
    BEGIN
        v_walk = 'FOR SELECT r.RDB$DB_KEY, ' || v_ident || IIF(v_kind = 'D' AND v_order IS NOT NULL, ', ' || v_place, ', NULL')
            || ' FROM ' || v_quoted || ' AS r'
            || IIF(v_kind = 'S', ' WHERE r.' || v_status || IIF(v_ready IS NULL, ' IS NULL', ' = :s_ready'), '')
            || '#begin' || COALESCE(' PLAN (r ORDER ' || v_index || ')', '') || COALESCE(' ORDER BY ' || v_sorting, '')
            || ' INTO v_place, v_ident, v_last_ident DO BEGIN IF (v_left <= 0) THEN LEAVE; v_hash = HASH(v_ident); v_free = 1; '
            || IIF(v_counted = 0,
                'IF (EXISTS (SELECT * FROM mq_polled_row AS p WHERE p.name = :v_name AND p.ident_hash = :v_hash AND p.ident = '
                    || ':v_ident'
                -- Dead, and made ready again by hand.
                || IIF(v_kind = 'S', ' AND (p.state <> ''E'' OR p.active = 1)', '') || ')) THEN v_free = 0; ',
                -- As many are passed over as have entries from before.
                'SELECT COUNT(*) FROM mq_polled_row AS p WHERE p.name = :v_name AND p.ident_hash = :v_hash AND p.ident = :v_ident'
                || ' AND p.id <= :v_before' || IIF(v_kind = 'S', ' AND p.active = 0 AND p.state <> ''E''', '') || ' INTO v_held; '
                || 'IF (v_held > 0) THEN BEGIN v_seen = 0; SELECT copies FROM mq_polled_seen WHERE ident_hash = :v_hash AND '
                || 'ident = :v_ident INTO v_seen; IF (v_seen < v_held) THEN BEGIN v_free = 0; IF (v_seen = 0) THEN '
                || 'INSERT INTO mq_polled_seen (ident_hash, ident, copies) VALUES (:v_hash, :v_ident, 1); ELSE '
                || 'UPDATE mq_polled_seen SET copies = copies + 1 WHERE ident_hash = :v_hash AND ident = :v_ident; END END ')
            || 'IF (v_free = 1) THEN BEGIN ' || v_new
            || IIF(v_kind = 'D' AND v_order IS NOT NULL, 'v_from_place = v_last_ident; v_copies = 1; ', '') || 'END END END ';
        IF (v_kind = 'D' AND v_order IS NOT NULL AND v_from IS NOT NULL
            AND v_now BETWEEN v_looked_at AND DATEADD(c_look MILLISECOND TO v_looked_at)) THEN
            v_text = v_text || 'o_from = CAST(v_from_place AS ' || v_order_type || '); '
                || REPLACE(v_walk, '#begin', ' WHERE r.' || v_order || ' >= :o_from');
        v_text = v_text || 'DELETE FROM mq_polled_seen; IF (v_left > 0) THEN BEGIN v_at = -1; '
            || REPLACE(v_walk, '#begin', '') || 'END ';
        IF (v_kind = 'D' AND v_order IS NOT NULL) THEN
            v_text = v_text || 'IF (v_at = -1 OR v_copies = 1) THEN UPDATE mq_polled SET place = :v_from_place, '
                || 'looked_at = IIF(:v_at = -1, :v_now, looked_at) WHERE name = :v_name; ';
    END
    v_text = v_text || 'END';
    FOR SELECT number FROM mq_use_table(:v_text, NULL, NULL, 0) INTO v_id DO
        v_id = NULL;
END^

SET TERM ; ^
