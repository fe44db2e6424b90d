-- find_one_column: the one column that an argument names.
-- Arguments:   p_argument (its name in the contract), p_table (its name from find_table), p_column (NULL: none)
-- Returns:     name (as in the catalog); NULL: the argument is NULL
CREATE OR ALTER PROCEDURE imq_find_one_column (
    p_argument varchar(30) CHARACTER SET ASCII, p_table varchar(63) CHARACTER SET UTF8, p_column mq_text
)
RETURNS (name varchar(63) CHARACTER SET UTF8)
AS
DECLARE v_count integer;
BEGIN
    IF (p_column IS NOT NULL) THEN
    BEGIN
        SELECT COUNT(*), MIN(name) FROM imq_find_columns(:p_argument, :p_table, :p_column) INTO v_count, name;
        IF (v_count > 1) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must name exactly one column');
    END
END
