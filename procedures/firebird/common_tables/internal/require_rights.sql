-- require_rights: refuse a caller without a right that the call needs on a user's table.
-- Arguments:   p_quoted (the table, quoted by find_table), p_column (a column to write, quoted; NULL: none), p_delete (1:
--              rows are deleted)
--
-- A dynamic statement has the rights of the connected user, not those of the procedure. The engine checks the rights even
-- for statements that never run.
CREATE OR ALTER PROCEDURE imq_require_rights (
    p_quoted varchar(130) CHARACTER SET UTF8, p_column varchar(130) CHARACTER SET UTF8, p_delete smallint
)
AS
DECLARE v_user varchar(130) CHARACTER SET UTF8;
DECLARE v_statement mq_argument;
BEGIN
    v_statement = q'[EXECUTE BLOCK
AS
DECLARE v_one bigint;
BEGIN
    IF (1 = 0) THEN
    BEGIN
        SELECT COUNT(*) FROM {"table"} INTO v_one;
        {"update"}
        {"delete"}
    END
END]';
    v_statement = REPLACE(v_statement, '{"update"}', IIF(p_column IS NULL, '', 'UPDATE {"table"} SET {"column"} = NULL;'));
    v_statement = REPLACE(v_statement, '{"delete"}', IIF(p_delete = 1, 'DELETE FROM {"table"};', ''));
    EXECUTE STATEMENT REPLACE(REPLACE(v_statement, '{"table"}', p_quoted), '{"column"}', COALESCE(p_column, ''));
    WHEN GDSCODE no_priv DO
    BEGIN
        v_user = TRIM(CURRENT_USER);
        IF (v_user NOT SIMILAR TO '[A-Z][A-Z0-9$#_]*' ESCAPE '#') THEN
            v_user = '"' || REPLACE(v_user, '"', '""') || '"';
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', TRIM(CURRENT_USER) || ' lacks rights on ' || p_quoted
            || ': GRANT SELECT' || TRIM(TRAILING FROM IIF(p_column IS NULL, '', ', UPDATE'))
            || TRIM(TRAILING FROM IIF(p_delete = 1, ', DELETE', '')) || ' ON ' || p_quoted || ' TO USER ' || v_user);
    END
END
