-- pick_rows: claim rows of a polling table: due retries first, then new rows, then lost rows.
-- Arguments:   p_name, p_size, p_batch_key (of the new batch)
-- Returns:     nothing; claimed rows are in mq_polled_row, and as they were before in mq_polled_taken. Rows without attempts
--              left, and rows that the table refused, are in mq_polled_write: the caller settles them
-- Transaction: joins the caller's, which is NO WAIT and has locked the row of mq_polled
--
-- Dynamic statements, with the rights of the connected user only, read and write the user's table. Static statements, with
-- the owner's rights, read and write the queue's tables. So a cursor reads the table, the row's entry is checked here, and a
-- second dynamic statement locks or changes the row. It takes its values as parameters and is prepared once for all rows.
-- Entries are read after the row was read and before it is locked: if a claim was finished in between, the row is gone or
-- has another status.
CREATE OR ALTER PROCEDURE imq_pick_rows (p_name mq_name, p_size integer, p_batch_key mq_key)
AS
-- How often a claim scans from the start, and for lost rows, in milliseconds.
DECLARE c_look integer = 1000;
DECLARE v_kind varchar(1) CHARACTER SET ASCII;
DECLARE v_counted smallint; DECLARE v_delete smallint; DECLARE v_recent smallint;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_status varchar(130) CHARACTER SET UTF8;
DECLARE v_order varchar(130) CHARACTER SET UTF8; DECLARE v_index varchar(130) CHARACTER SET UTF8;
DECLARE v_to_write varchar(130) CHARACTER SET UTF8;
DECLARE v_place mq_text; DECLARE v_ident mq_text; DECLARE v_find mq_text; DECLARE v_take mq_text;
DECLARE v_walk mq_text; DECLARE v_lost mq_text; DECLARE v_count mq_text;
DECLARE v_ready mq_status; DECLARE v_active mq_status;
DECLARE v_scanned_at timestamp; DECLARE v_now timestamp;
DECLARE v_left integer;
DECLARE v_from mq_ident; DECLARE v_last mq_ident;
BEGIN
    EXECUTE PROCEDURE imq_claim_statements(p_name)
        RETURNING_VALUES v_kind, v_counted, v_quoted, v_status, v_order, v_place, v_ident, v_to_write, v_index, v_take, v_find,
            v_walk, v_count;
    v_now = mq_utc_now();
    v_left = p_size;
    SELECT ready_value, active_value, IIF(on_complete = 'delete', 1, 0), place, scanned_at
    FROM mq_polled WHERE name = :p_name
    INTO v_ready, v_active, v_delete, v_from, v_scanned_at;
    v_recent = IIF(v_now BETWEEN v_scanned_at AND DATEADD(c_look MILLISECOND TO v_scanned_at), 1, 0);

    EXECUTE PROCEDURE imq_pick_waiting(p_name, p_batch_key, v_left, v_kind, v_counted, v_active, v_ready, v_find, v_take)
        RETURNING_VALUES v_left;

    IF (v_kind = 'K') THEN
        EXECUTE PROCEDURE imq_pick_placed(p_name, p_batch_key, v_left, v_quoted, v_order, v_index, v_place, v_ident, v_take);
    ELSE
    BEGIN
        v_lost = REPLACE(v_walk, '{"condition"}', 'WHERE r.' || v_status || ' = :s_status');
        IF (v_recent = 0) THEN
            EXECUTE PROCEDURE imq_pick_lost(p_name, p_batch_key, v_left, v_counted, v_active, v_count, v_lost, v_take)
                RETURNING_VALUES v_left;
        IF (v_kind = 'D' AND v_order IS NOT NULL AND v_from IS NOT NULL AND v_recent = 1) THEN
            EXECUTE PROCEDURE imq_pick_new(p_name, p_batch_key, v_left, v_kind, v_counted, NULL, NULL,
                REPLACE(v_walk, '{"condition"}', 'WHERE r.' || v_order || ' >= :o_from'), v_take, v_from)
                RETURNING_VALUES v_left, v_last;
        IF (v_left > 0) THEN
        BEGIN
            EXECUTE PROCEDURE imq_pick_new(p_name, p_batch_key, v_left, v_kind, v_counted, v_ready, v_active,
                IIF(v_ready IS NULL, REPLACE(v_walk, '{"condition"}', COALESCE('WHERE r.' || v_status || ' IS NULL', '')), v_lost),
                v_take, NULL)
                RETURNING_VALUES v_left, v_from;
            v_last = COALESCE(v_from, v_last, '');
            v_scanned_at = v_now;
        END
        IF (v_kind = 'D' AND v_order IS NOT NULL AND v_last IS NOT NULL) THEN
            UPDATE mq_polled SET place = NULLIF(:v_last, ''), scanned_at = :v_scanned_at WHERE name = :p_name;
        IF (v_recent = 1 AND v_left > 0) THEN
            EXECUTE PROCEDURE imq_pick_lost(p_name, p_batch_key, v_left, v_counted, v_active, v_count, v_lost, v_take)
                RETURNING_VALUES v_left;
    END
    WHEN GDSCODE no_priv DO
    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_to_write, v_delete);
        EXCEPTION;
    END
END
