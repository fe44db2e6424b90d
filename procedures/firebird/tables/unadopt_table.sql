-- unadopt_table: forget a polling table: claimed rows get their ready_value back, and no more rows are claimed.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such polling table
-- Errors:      50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's, preferably READ COMMITTED NO WAIT
-- Example:     SELECT * FROM mq_unadopt_table('orders');
--
-- To release a table that was dropped, the role is enough.

CREATE OR ALTER PROCEDURE mq_unadopt_table (
    p_name mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_n bigint;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_status varchar(130) CHARACTER SET UTF8;
DECLARE v_delete smallint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    affected = 0;
    IF (EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
    BEGIN
        EXECUTE PROCEDURE imq_lock_polled(p_name, NULL, 2000) RETURNING_VALUES v_n;
        SELECT '"' || REPLACE(TRIM(t.rdb$relation_name), '"', '""') || '"', '"' || REPLACE(TRIM(r.rdb$field_name), '"', '""') || '"',
            IIF(p.on_complete = 'delete', 1, 0)
        FROM mq_polled AS p
        JOIN rdb$relations AS t ON t.rdb$relation_name = p.table_name AND t.rdb$owner_name = p.table_owner
            AND COALESCE(t.rdb$relation_type, 0) = 0 AND t.rdb$view_blr IS NULL
        LEFT JOIN rdb$relation_fields AS r ON r.rdb$relation_name = t.rdb$relation_name AND r.rdb$field_name = p.status_column
        WHERE p.name = :p_name
        INTO v_quoted, v_status, v_delete;
        IF (v_quoted IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_require_rights(v_quoted, v_status, v_delete);
        DELETE FROM mq_polled_batch WHERE name = :p_name;
        DELETE FROM mq_polled_write;
        BEGIN
            INSERT INTO mq_polled_write (id, kind)
            SELECT id, 'R' FROM mq_polled_row WHERE name = :p_name AND active = 1 AND state <> 'E';
            EXECUTE PROCEDURE imq_settle_rows(p_name) RETURNING_VALUES v_n, v_n, v_n, v_n, v_n;
            WHEN EXCEPTION mq_50005, EXCEPTION mq_50006 DO
                -- The table was dropped or changed: there is nothing to give back.
                v_n = 0;
        END
        DELETE FROM mq_polled_row WHERE name = :p_name;
        DELETE FROM mq_polled_mark WHERE name = :p_name;
        DELETE FROM mq_polled WHERE name = :p_name;
        affected = ROW_COUNT;
    END
    SUSPEND;
END
