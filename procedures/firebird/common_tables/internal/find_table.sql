-- find_table: find a user's table by the name in an argument.
-- Arguments:   p_argument (its name in the contract), p_table (as written in SQL)
-- Returns:     name (as in the catalog), quoted (for SQL), label (for error texts)
CREATE OR ALTER PROCEDURE imq_find_table (p_argument varchar(30) CHARACTER SET ASCII, p_table mq_text)
RETURNS (
    name varchar(63) CHARACTER SET UTF8, quoted varchar(130) CHARACTER SET UTF8,
    label varchar(63) CHARACTER SET UTF8
)
AS
DECLARE v_name mq_name;
DECLARE v_count integer;
DECLARE v_type smallint; DECLARE v_system smallint;
DECLARE v_owner varchar(63) CHARACTER SET UTF8;
BEGIN
    SELECT MAX(n), MAX(name) FROM imq_split_names(:p_argument, :p_table) INTO v_count, v_name;
    IF (v_count > 1) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must name exactly one table');
    -- A name has up to 31 bytes on 3.0, and up to 63 characters on later versions.
    IF (CHAR_LENGTH(v_name) <= 63) THEN
        SELECT TRIM(rdb$relation_name), COALESCE(rdb$relation_type, IIF(rdb$view_blr IS NULL, 0, 1)), rdb$system_flag,
            TRIM(rdb$owner_name)
        FROM rdb$relations WHERE rdb$relation_name = :v_name
        INTO name, v_type, v_system, v_owner;
    IF (name IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', p_argument || ': there is no table ' || v_name);
    label = name;
    quoted = '"' || REPLACE(name, '"', '""') || '"';
    IF (v_system <> 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', label || ' is a system table');
    IF (v_type <> 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', label || ' is '
            || CASE v_type WHEN 1 THEN 'a view' WHEN 2 THEN 'an external table' ELSE 'a temporary table' END
            || '; it must be an ordinary table');
    IF (name STARTING WITH 'MQ_'
        AND v_owner = (SELECT TRIM(rdb$owner_name) FROM rdb$relations WHERE rdb$relation_name = 'MQ_MESSAGE')) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', label || ' is a table of the queue');
    SUSPEND;
END
