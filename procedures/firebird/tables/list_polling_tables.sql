-- list_polling_tables: list the polling tables, their settings, and how many rows are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters; NULL: all)
-- Returns:     one row per polling table, by name; active, waiting and dead are counted up to 10,000
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks; does not read the polling tables themselves
-- Example:     SELECT name, table_name, active, dead FROM mq_list_polling_tables;

CREATE OR ALTER PROCEDURE mq_list_polling_tables (
    p_name mq_argument = NULL
)
RETURNS (
    name mq_name, table_name mq_name, key_columns mq_text, order_column mq_name, status_column mq_name,
    ready_value mq_text, active_value mq_text, done_value mq_text, error_value mq_text,
    on_complete varchar(6) CHARACTER SET UTF8, late_seconds integer, equal_rows smallint, max_attempts integer,
    active bigint, waiting bigint, dead bigint
)
AS
DECLARE v_columns mq_text;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    FOR
        SELECT p.name, p.table_name, p.key_columns, p.order_column, p.status_column, p.ready_value, p.active_value, p.done_value,
            p.error_value, TRIM(p.on_complete), p.late_seconds, p.equal_rows, p.max_attempts
        FROM mq_polled AS p
        WHERE :p_name IS NULL OR p.name = :p_name
        ORDER BY p.name
        INTO name, table_name, v_columns, order_column, status_column, ready_value, active_value, done_value, error_value, on_complete,
            late_seconds, equal_rows, max_attempts
    DO
    BEGIN
        key_columns = NULL;
        IF (v_columns IS NOT NULL) THEN
            SELECT LIST(IIF(n.name SIMILAR TO '[A-Z][A-Z0-9_$]*', n.name, '"' || REPLACE(n.name, '"', '""') || '"'), ', ')
            FROM imq_split_names('key_columns', :v_columns) AS n
            INTO key_columns;
        active = imq_count_polled(name, 'A');
        waiting = imq_count_polled(name, 'N');
        dead = imq_count_polled(name, 'E');
        SUSPEND;
    END
END
