-- adopt_table: use a user's table as a queue, without changing the table.
-- Arguments:   p_name (1 to 200 characters), p_table (as SQL names it), p_options (a flat
--              JSON object): key_columns (1 to 100 names separated by commas; default all columns, with equal_rows 1),
--              order_column (default the key columns), status_column (default none), ready_value, active_value (default: a
--              claim does not write the status), done_value, error_value, on_complete (keep or delete; keep), late_seconds
--              (0 to 315,360,000; only without a status and with keep), equal_rows (0 or 1; 0), max_attempts (1 to 1,000;
--              25)
-- Returns:     created: 1; 0 when the table is already adopted with the same settings
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq_adopt_table('orders', 'orders', '{"key_columns": "id", "status_column": "status",
--              "ready_value": "N", "active_value": "A", "done_value": "D", "error_value": "E"}');
--
-- The table is read and changed with the rights of the caller, here and in every claim.

CREATE OR ALTER PROCEDURE mq_adopt_table (
    p_name mq_argument,
    p_table mq_text,
    p_options mq_text = NULL
)
RETURNS (created smallint)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8; DECLARE v_order varchar(63) CHARACTER SET UTF8;
DECLARE v_status varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_by varchar(130) CHARACTER SET UTF8;
DECLARE v_bad varchar(130) CHARACTER SET UTF8;
DECLARE v_keys mq_text; DECLARE v_wanted mq_text; DECLARE v_ident mq_text;
DECLARE v_n integer; DECLARE v_same integer;
DECLARE v_delete smallint;
DECLARE v_key_columns mq_text; DECLARE v_order_column mq_text; DECLARE v_status_column mq_text; DECLARE v_ready_value mq_text;
DECLARE v_active_value mq_text; DECLARE v_done_value mq_text; DECLARE v_error_value mq_text; DECLARE v_on_complete mq_text;
DECLARE v_late_seconds bigint; DECLARE v_equal_rows bigint; DECLARE v_max_attempts bigint;
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_moment timestamp; DECLARE v_text mq_text;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    FOR
        SELECT o.name, o.number, o.moment, o.text FROM imq_read_options(:p_options, 'options',
            ';key_columns:text;order_column:text;status_column:text;ready_value:text;'
            || 'active_value:text;done_value:text;error_value:text;on_complete:text;'
            || 'late_seconds:0:315360000;equal_rows:0:1;max_attempts:1:1000;') AS o
        INTO v_option, v_number, v_moment, v_text
    DO
    BEGIN
        v_key_columns = IIF(v_option = 'key_columns', v_text, v_key_columns);
        v_order_column = IIF(v_option = 'order_column', v_text, v_order_column);
        v_status_column = IIF(v_option = 'status_column', v_text, v_status_column);
        v_ready_value = IIF(v_option = 'ready_value', v_text, v_ready_value);
        v_active_value = IIF(v_option = 'active_value', v_text, v_active_value);
        v_done_value = IIF(v_option = 'done_value', v_text, v_done_value);
        v_error_value = IIF(v_option = 'error_value', v_text, v_error_value);
        v_on_complete = IIF(v_option = 'on_complete', v_text, v_on_complete);
        v_late_seconds = IIF(v_option = 'late_seconds', v_number, v_late_seconds);
        v_equal_rows = IIF(v_option = 'equal_rows', v_number, v_equal_rows);
        v_max_attempts = IIF(v_option = 'max_attempts', v_number, v_max_attempts);
    END
    IF (v_on_complete NOT LIKE 'keep' AND v_on_complete NOT LIKE 'delete') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'on_complete: must be keep or delete');
    v_delete = IIF(v_on_complete LIKE 'delete', 1, 0);
    SELECT name, quoted FROM imq_find_table('table', :p_table) INTO v_table, v_quoted;
    IF (v_key_columns IS NOT NULL) THEN
        SELECT LIST(quoted), COUNT(*) FROM imq_find_columns('key_columns', :v_table, :v_key_columns) INTO v_keys, v_n;
    EXECUTE PROCEDURE imq_find_one_column('order_column', v_table, v_order_column) RETURNING_VALUES v_order;
    EXECUTE PROCEDURE imq_find_one_column('status_column', v_table, v_status_column) RETURNING_VALUES v_status;

    IF (v_status IS NULL) THEN
    BEGIN
        v_bad = TRIM(CASE
            WHEN v_ready_value IS NOT NULL THEN 'ready_value'
            WHEN v_active_value IS NOT NULL THEN 'active_value'
            WHEN v_done_value IS NOT NULL THEN 'done_value'
            WHEN v_error_value IS NOT NULL THEN 'error_value' END);
        IF (v_bad IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_bad || ': needs a status_column');
    END
    ELSE
    BEGIN
        IF (',' || v_keys || ',' CONTAINING ',"' || REPLACE(v_status, '"', '""') || '",') THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'key_columns: must not include the status_column');
        IF (v_status = v_order) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'order_column: must not be the status_column');
        EXECUTE PROCEDURE imq_require_status(v_table, v_status, v_ready_value, v_active_value, v_done_value, v_error_value,
            v_delete);
    END
    IF (v_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete = 1)) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'late_seconds: allowed only without a status_column and with keep');
    IF (v_equal_rows = 1 AND v_keys IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'equal_rows: allowed only without key_columns');

    v_ident = COALESCE(v_keys, imq_ident_columns(v_table, v_status));
    EXECUTE PROCEDURE imq_require_distinct_rows(v_table, v_keys, v_ident, COALESCE(v_equal_rows, 0));

    v_by = '"' || REPLACE(v_order, '"', '""') || '"';
    v_wanted = COALESCE(v_by, v_keys);
    IF (v_status IS NOT NULL) THEN
        v_wanted = '"' || REPLACE(v_status, '"', '""') || '"' || COALESCE(',' || v_wanted, '');
    ELSE IF (v_delete = 0) THEN
    BEGIN
        IF (v_late_seconds IS NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'without a status, rows of ' || v_table
                || ' that commit late are missed: '
                || 'give late_seconds, the longest delay, or 0 to accept this');
        IF (v_order IS NULL AND v_n IS DISTINCT FROM 1) THEN
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
                'order_column: needed without a status and with keep, unless there is exactly one key column');
        EXECUTE PROCEDURE imq_require_order(v_table, v_wanted, 1);
    END
    IF (v_by IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_order(v_table, v_by, 0);
    EXECUTE PROCEDURE imq_require_claim_index(v_table, v_wanted) RETURNING_VALUES v_bad;

    v_bad = '"' || REPLACE(v_status, '"', '""') || '"';
    IF (v_delete = 1 AND v_status IS NULL) THEN
        -- A row lock needs the right to update at least one column.
        SELECT FIRST 1 quoted FROM imq_find_columns('table', :v_table, :v_ident) INTO v_bad;
    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_bad, v_delete);
        WHEN GDSCODE read_only_field DO
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'status_column: ' || v_status || ' is computed');
    END

    SELECT MIN(LEFT(name, 60)) FROM mq_polled
    WHERE table_name = :v_table AND name <> :p_name AND (:v_status IS NOT NULL OR :v_delete = 1)
        AND (status_column IS NOT NULL OR on_complete = 'delete')
        AND status_column IS NOT DISTINCT FROM :v_status AND ready_value IS NOT DISTINCT FROM CAST(:v_ready_value AS mq_status)
    INTO v_bad;
    IF (v_bad IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('already_exists',
            v_table || ' is adopted as ' || v_bad || ' already: its rows would be claimed twice');
    created = IIF(EXISTS (SELECT * FROM mq_polled WHERE name = :p_name), 0, 1);
    IF (created = 1) THEN
        INSERT INTO mq_polled (name, id, table_name, table_owner, key_columns, ident_columns, ident_types, order_column,
            status_column, ready_value, active_value, done_value, error_value, on_complete, late_seconds, equal_rows, max_attempts)
        VALUES (:p_name, NEXT VALUE FOR mq_polled_id, :v_table,
            (SELECT TRIM(rdb$owner_name) FROM rdb$relations WHERE rdb$relation_name = :v_table), :v_keys, :v_ident,
            (SELECT LIST(COALESCE(type, '') || ';', '') FROM imq_find_columns('key_columns', :v_table, :v_ident)), :v_order,
            :v_status, :v_ready_value, :v_active_value, :v_done_value, :v_error_value, IIF(:v_delete = 1, 'delete', 'keep'),
            :v_late_seconds, COALESCE(:v_equal_rows, 0), COALESCE(:v_max_attempts, 25));
    ELSE
    BEGIN
        SELECT COUNT(*) FROM mq_polled
        WHERE name = :p_name AND table_name = :v_table AND key_columns IS NOT DISTINCT FROM :v_keys
            AND order_column IS NOT DISTINCT FROM :v_order AND status_column IS NOT DISTINCT FROM :v_status
            AND ready_value IS NOT DISTINCT FROM CAST(:v_ready_value AS mq_status)
            AND active_value IS NOT DISTINCT FROM CAST(:v_active_value AS mq_status)
            AND done_value IS NOT DISTINCT FROM CAST(:v_done_value AS mq_status)
            AND error_value IS NOT DISTINCT FROM CAST(:v_error_value AS mq_status)
            AND on_complete = IIF(:v_delete = 1, 'delete', 'keep') AND late_seconds IS NOT DISTINCT FROM :v_late_seconds
            AND equal_rows = COALESCE(:v_equal_rows, 0) AND max_attempts = COALESCE(:v_max_attempts, 25)
        INTO v_same;
        IF (v_same = 0) THEN
            EXECUTE PROCEDURE imq_raise_error('already_exists',
                'name: ' || LEFT(p_name, 100) || ' is adopted with other settings: unadopt_table first');
    END
    SUSPEND;
END
