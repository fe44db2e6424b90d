-- write_rows: set the status of rows of an adopted table, or delete them, as mq_polled_write says.
-- Arguments:   p_name
-- Returns:     nothing. to_status: D, E, R (done_value, error_value, ready_value), X (delete), L (only look); outcome: W
--              (written), G (gone: it is not there any more as we left it) or X (the table refuses it, with the error)
-- Errors:      as polled_shape; the engine's lock conflict when another transaction keeps a row for longer than two seconds
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_write_rows('orders');
--
-- A row at a time, each in a block of its own: what a trigger or a constraint refuses does not stop the others. Of equal rows
-- each turn changes one.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_write_rows (
    p_name mq_name
)
AS
DECLARE c_seconds integer = 2;
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
DECLARE v_delete smallint;
DECLARE v_type varchar(300) CHARACTER SET UTF8;
DECLARE v_text mq_text;
BEGIN
    IF (NOT EXISTS (SELECT * FROM mq_polled_write WHERE to_status IS NOT NULL AND outcome IS NULL)) THEN
        EXIT;
    EXECUTE PROCEDURE mq_polled_shape(p_name)
        RETURNING_VALUES v_kind, v_counted, v_quoted, v_status, v_order, v_index, v_sorting, v_place, v_declares, v_parse,
            v_matches, v_ident, v_content, v_json;
    SELECT id, IIF(on_complete = 'delete', 1, 0) FROM mq_polled WHERE name = :p_name INTO v_id, v_delete;
    v_type = COALESCE('TYPE OF COLUMN ' || v_quoted || '.' || v_status, 'smallint');
    IF (v_kind = 'S') THEN
        v_matches = v_matches || ' AND r.' || v_status || ' IS NOT DISTINCT FROM :s_from';
    v_text = 'EXECUTE BLOCK AS DECLARE v_id bigint; '
        || 'DECLARE v_ident mq_ident; DECLARE v_from varchar(1); DECLARE v_to varchar(1); DECLARE v_outcome varchar(1); '
        || 'DECLARE v_error mq_error; DECLARE v_busy integer; DECLARE v_until timestamp; DECLARE v_again_at timestamp; '
        || 'DECLARE v_place char(8) CHARACTER SET OCTETS; DECLARE v_at integer; DECLARE v_end integer; DECLARE v_length integer; '
        || 'DECLARE v_found integer; '
        || 'DECLARE s_ready ' || v_type || '; DECLARE s_active ' || v_type || '; DECLARE s_done ' || v_type
        || '; DECLARE s_error '
        || v_type || '; DECLARE s_from ' || v_type || '; DECLARE s_to ' || v_type || '; DECLARE s_is ' || v_type || '; '
        || v_declares
        || 'BEGIN '
        || IIF(v_kind = 'S', 'SELECT ready_value, active_value, done_value, error_value FROM mq_polled WHERE id = ' || v_id
            || ' INTO s_ready, s_active, s_done, s_error; ', '')
        || 'FOR SELECT w.id, p.ident, w.from_status, w.to_status FROM mq_polled_write AS w '
        || 'JOIN mq_polled_row AS p ON p.id = w.id WHERE w.to_status IS NOT NULL AND w.outcome IS NULL ORDER BY w.id '
        || 'INTO v_id, v_ident, v_from, v_to DO BEGIN ' || v_parse
        || IIF(v_kind = 'S', 's_from = CASE v_from WHEN ''A'' THEN s_active WHEN ''E'' THEN s_error ELSE s_ready END; '
            || 's_to = CASE v_to WHEN ''D'' THEN s_done WHEN ''E'' THEN s_error ELSE s_ready END; ', '')
        || 'v_outcome = NULL; v_until = NULL; WHILE (v_outcome IS NULL) DO BEGIN v_busy = 0; v_error = NULL; '
        || 'FOR SELECT r.RDB$DB_KEY FROM ' || v_quoted || ' AS r WHERE ' || v_matches || ' INTO v_place DO BEGIN BEGIN '
        || 'FOR SELECT 1 AS found FROM ' || v_quoted || ' AS r WHERE r.RDB$DB_KEY = :v_place AND ' || v_matches
        || ' INTO v_found AS CURSOR c DO BEGIN '
        || 'IF (v_to = ''L'') THEN v_outcome = ''W''; '
        || IIF(v_kind = 'S', 'ELSE IF (v_to <> ''X'') THEN BEGIN UPDATE ' || v_quoted || ' SET ' || v_status
            || ' = :s_to WHERE CURRENT OF c; v_outcome = ''W''; END ', '')
        -- Where nothing is ever deleted, nobody needs the right to.
        || IIF(v_delete = 1, 'ELSE BEGIN DELETE FROM ' || v_quoted || ' WHERE CURRENT OF c; v_outcome = ''W''; END ', '')
        || 'END '
        -- A trigger may have set it to something else.
        || IIF(v_kind = 'S', 'IF (v_outcome = ''W'' AND v_to NOT IN (''L'', ''X'')) THEN BEGIN SELECT r.' || v_status
        || ' FROM ' || v_quoted
            || ' AS r WHERE r.RDB$DB_KEY = :v_place INTO s_is; IF (s_is IS NOT DISTINCT FROM s_from) THEN BEGIN v_outcome = '
            || '''X''; '
            || 'v_error = ''the status stays as it was: a trigger?''; END END ', '')
        -- Not WHEN GDSCODE: see pick_rows. The last two are cancelled and no_priv.
        || 'WHEN ANY DO BEGIN IF (GDSCODE IN (335544336, 335544345, 335544451, 335544382, 335544348)) THEN BEGIN '
        || 'IF (v_until < mq_utc_now()) THEN EXCEPTION; v_busy = 1; v_outcome = NULL; END '
        || 'ELSE IF (GDSCODE IN (335544794, 335544352)) THEN EXCEPTION; '
        || 'ELSE BEGIN v_outcome = ''X''; v_error = ' || mq_error_expression() || '; END END END '
        || 'IF (v_outcome IS NOT NULL) THEN LEAVE; END '
        || 'IF (v_outcome IS NULL AND v_busy = 0) THEN v_outcome = ''G''; IF (v_outcome IS NULL) THEN BEGIN '
        || 'v_again_at = DATEADD(1 MILLISECOND TO mq_utc_now()); v_until = COALESCE(v_until, DATEADD(' || c_seconds
        || ' SECOND TO v_again_at)); WHILE (mq_utc_now() < v_again_at) DO v_busy = 1; END END '
        || 'UPDATE mq_polled_write SET outcome = :v_outcome, error = COALESCE(:v_error, error) WHERE id = :v_id; END END';
    FOR SELECT number FROM mq_use_table(:v_text, NULL, NULL, 0) INTO v_id DO
        v_kind = NULL;
END^

SET TERM ; ^
