-- pick_rows: claim rows of an adopted table: those that wait for another attempt, then new ones, then those whose claim was lost.
-- Arguments:   p_name, p_size, p_batch_key (of the new batch)
-- Returns:     nothing: what was claimed stands in mq_polled_row, and as it was before in mq_polled_taken. What has used up its
--              attempts or was refused by the table stands in mq_polled_write: the caller settles that
-- Errors:      as polled_shape and require_rights
-- Transaction: joins the caller's, which is NO WAIT and has the row of mq_polled
-- Example:     EXECUTE PROCEDURE mq_pick_rows('orders', 10, v_key);
--
-- The user's table is read and written by dynamic statements, which have the rights of the connected user only; the queue's tables
-- by static ones, which have ours. So each row of a cursor over the table is looked up here, and locked or changed by a statement
-- of its own, which takes its values as parameters and is prepared once for all rows.
-- Entries are looked for after the row was read and before it is locked: a row whose claim was finished meanwhile is gone or has
-- another status by then.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pick_rows (
    p_name mq_name,
    p_size integer,
    p_batch_key mq_key
)
AS
-- A scan from the very start is made so often, in milliseconds; and so often it is looked for lost claims.
DECLARE c_look integer = 1000;
DECLARE v_kind varchar(1) CHARACTER SET ASCII;
DECLARE v_counted smallint;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_status varchar(130) CHARACTER SET UTF8;
DECLARE v_order varchar(130) CHARACTER SET UTF8;
DECLARE v_index varchar(130) CHARACTER SET UTF8;
DECLARE v_wanted mq_text;
DECLARE v_sorting mq_text;
DECLARE v_place mq_text;
DECLARE v_to_write varchar(130) CHARACTER SET UTF8;
DECLARE v_declares mq_text;
DECLARE v_parse mq_text;
DECLARE v_matches mq_text;
DECLARE v_ident mq_text;
DECLARE v_content mq_text;
DECLARE v_json mq_text;
DECLARE v_table varchar(63) CHARACTER SET UTF8;
DECLARE v_ready mq_status;
DECLARE v_active mq_status;
DECLARE v_delete smallint;
DECLARE v_scanned_at timestamp;
DECLARE v_now timestamp;
DECLARE v_recent smallint;
DECLARE v_check mq_text;
DECLARE v_find mq_text;
DECLARE v_take mq_text;
DECLARE v_walk mq_text;
DECLARE v_left integer;
DECLARE v_from mq_ident;
DECLARE v_last mq_ident;
DECLARE v_lost mq_text;
DECLARE v_count mq_text;
BEGIN
    EXECUTE PROCEDURE mq_polled_shape(p_name)
        RETURNING_VALUES v_kind, v_counted, v_quoted, v_status, v_order, v_wanted, v_sorting, v_place, v_to_write, v_declares,
            v_parse, v_matches, v_ident, v_content, v_json;
    v_now = mq_utc_now();
    v_left = p_size;
    SELECT table_name, ready_value, active_value, IIF(on_complete = 'delete', 1, 0), place, scanned_at
    FROM mq_polled WHERE name = :p_name
    INTO v_table, v_ready, v_active, v_delete, v_from, v_scanned_at;
    EXECUTE PROCEDURE mq_require_claim_index(v_table, v_wanted) RETURNING_VALUES v_index;
    v_recent = IIF(v_now BETWEEN v_scanned_at AND DATEADD(c_look MILLISECOND TO v_scanned_at), 1, 0);

    v_check = IIF(v_status IS NULL, '', ' AND r.{"status"} IS NOT DISTINCT FROM :s_status');
    -- The row at p_place, if it still is the one that was seen: mine is 1 when it is ours now, 0 when it is locked or was changed,
    -- 2 when the table refuses it. One WHEN: of several that fit, the engine runs one after the other. The numbers are those of
    -- deadlock, lock_conflict, update_conflict, random, no_cur_rec, and of what is cancelled.
    v_take = q'[EXECUTE BLOCK (p_place char(8) CHARACTER SET OCTETS = ?, p_ident mq_ident = ?, p_to mq_status = ?,
    p_write smallint = ?, p_status mq_status = ?)
RETURNS (mine smallint, json mq_text, content mq_text, error mq_error)
AS
DECLARE s_status {"status_type"};
DECLARE s_to {"status_type"};
BEGIN
    s_status = p_status;
    s_to = p_to;
    mine = 0;
    BEGIN
        FOR SELECT {"json"} AS json, {"content"} AS content
            FROM {"table"} AS r
            WHERE r.RDB$DB_KEY = :p_place AND {"ident"} = :p_ident{"check"}
            {"into_cursor"}
        DO
        BEGIN
            {"update"}
            mine = 1;
        END
        WHEN ANY DO
            IF (GDSCODE IN (335544336, 335544345, 335544451, 335544382, 335544348)) THEN
                mine = 0;
            ELSE IF (GDSCODE = 335544794) THEN
                EXCEPTION;
            ELSE
            BEGIN
                mine = 2;
                error = {"error"};
            END
    END
    SUSPEND;
END]';
    v_take = REPLACE(v_take, '{"into_cursor"}', IIF(v_kind = 'K', 'INTO json, content AS CURSOR c', mq_row_lock()));
    v_take = REPLACE(v_take, '{"update"}', IIF(v_active IS NULL, '',
        'IF (p_write = 1) THEN UPDATE {"table"} SET {"status"} = :s_to WHERE CURRENT OF c;'));
    v_take = REPLACE(REPLACE(v_take, '{"check"}', v_check), '{"error"}', mq_error_expression());
    v_take = REPLACE(REPLACE(REPLACE(v_take, '{"ident"}', v_ident), '{"json"}', v_json), '{"content"}', v_content);
    v_take = mq_fill_names(v_take, v_quoted, v_status, v_order, NULL);
    -- The rows of an identity.
    v_find = q'[EXECUTE BLOCK (p_ident mq_ident = ?, p_status mq_status = ?)
RETURNS (place char(8) CHARACTER SET OCTETS)
AS
DECLARE s_status {"status_type"};
DECLARE v_ident mq_ident;
DECLARE v_at integer;
DECLARE v_end integer;
DECLARE v_length integer;
{"declares"}
BEGIN
    s_status = p_status;
    v_ident = p_ident;
    {"parse"}
    FOR SELECT r.RDB$DB_KEY FROM {"table"} AS r WHERE {"matches"}{"check"} INTO place DO
        SUSPEND;
END]';
    v_find = REPLACE(REPLACE(v_find, '{"declares"}', v_declares), '{"parse"}', v_parse);
    v_find = REPLACE(REPLACE(v_find, '{"matches"}', v_matches), '{"check"}', v_check);
    v_find = mq_fill_names(v_find, v_quoted, v_status, v_order, NULL);
    EXECUTE PROCEDURE mq_pick_waiting(p_name, p_batch_key, v_left, v_kind, v_counted, v_active, v_ready, v_find, v_take)
        RETURNING_VALUES v_left;

    IF (v_kind = 'K') THEN
        EXECUTE PROCEDURE mq_pick_placed(p_name, p_batch_key, v_left, v_quoted, v_order, v_index, v_place, v_ident, v_take);
    ELSE
    BEGIN
        -- The rows that an index finds.
        v_walk = q'[EXECUTE BLOCK (p_from mq_ident = ?, p_status mq_status = ?)
RETURNS (place char(8) CHARACTER SET OCTETS, ident mq_ident, order_text mq_ident)
AS
DECLARE s_status {"status_type"};
DECLARE o_from {"order_type"};
BEGIN
    s_status = p_status;
    {"begin"}
    FOR SELECT r.RDB$DB_KEY, {"ident"}, {"order_text"} FROM {"table"} AS r {"where"} {"plan"} {"sorting"}
        INTO place, ident, order_text
    DO
        SUSPEND;
END]';
        v_walk = REPLACE(v_walk, '{"begin"}', IIF(v_order IS NULL, '', 'o_from = CAST(p_from AS {"order_type"});'));
        v_walk = REPLACE(v_walk, '{"order_text"}', IIF(v_kind = 'D' AND v_order IS NOT NULL, v_place, 'NULL'));
        v_walk = REPLACE(v_walk, '{"plan"}', IIF(v_index IS NULL, '', 'PLAN (r ORDER {"index"})'));
        v_walk = REPLACE(REPLACE(v_walk, '{"sorting"}', COALESCE('ORDER BY ' || v_sorting, '')), '{"ident"}', v_ident);
        v_lost = mq_fill_names(REPLACE(v_walk, '{"where"}', 'WHERE r.{"status"} = :s_status'), v_quoted, v_status, v_order, v_index);
        v_count = mq_fill_names(q'[EXECUTE BLOCK (p_most bigint = ?, p_status mq_status = ?)
RETURNS (n bigint)
AS
DECLARE s_status {"status_type"};
BEGIN
    s_status = p_status;
    SELECT COUNT(*) FROM (SELECT 1 AS one FROM {"table"} AS r WHERE r.{"status"} = :s_status ROWS :p_most) AS d INTO n;
    SUSPEND;
END]', v_quoted, v_status, v_order, NULL);
        IF (v_recent = 0) THEN
            EXECUTE PROCEDURE mq_pick_lost(p_name, p_batch_key, v_left, v_counted, v_active, v_count, v_lost, v_take)
                RETURNING_VALUES v_left;
        IF (v_kind = 'D' AND v_order IS NOT NULL AND v_from IS NOT NULL AND v_recent = 1) THEN
            EXECUTE PROCEDURE mq_pick_new(p_name, p_batch_key, v_left, v_kind, v_counted, NULL, NULL,
                mq_fill_names(REPLACE(v_walk, '{"where"}', 'WHERE r.{"order"} >= :o_from'), v_quoted, v_status, v_order, v_index),
                v_take, v_from)
                RETURNING_VALUES v_left, v_last;
        IF (v_left > 0) THEN
        BEGIN
            EXECUTE PROCEDURE mq_pick_new(p_name, p_batch_key, v_left, v_kind, v_counted, v_ready, v_active,
                mq_fill_names(REPLACE(v_walk, '{"where"}', CASE
                    WHEN v_status IS NULL THEN ''
                    WHEN v_ready IS NULL THEN 'WHERE r.{"status"} IS NULL'
                    ELSE 'WHERE r.{"status"} = :s_status' END), v_quoted, v_status, v_order, v_index), v_take, NULL)
                RETURNING_VALUES v_left, v_from;
            v_last = COALESCE(v_from, v_last, '');
            v_scanned_at = v_now;
        END
        IF (v_kind = 'D' AND v_order IS NOT NULL AND v_last IS NOT NULL) THEN
            UPDATE mq_polled SET place = NULLIF(:v_last, ''), scanned_at = :v_scanned_at WHERE name = :p_name;
        IF (v_recent = 1 AND v_left > 0) THEN
            EXECUTE PROCEDURE mq_pick_lost(p_name, p_batch_key, v_left, v_counted, v_active, v_count, v_lost, v_take)
                RETURNING_VALUES v_left;
    END
    WHEN GDSCODE no_priv DO
    BEGIN
        EXECUTE PROCEDURE mq_require_rights(v_quoted, v_to_write, v_delete);
        EXCEPTION;
    END
END^

SET TERM ; ^
