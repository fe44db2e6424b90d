-- grant_to: grant roles the call of procedures and functions and the reading of tables and views; names separated by blanks.
-- Transaction: the caller's; the rights take effect when it commits
CREATE OR ALTER PROCEDURE imq_grant_to (
    p_roles varchar(200) CHARACTER SET UTF8, p_calls varchar(4000) CHARACTER SET UTF8,
    p_reads varchar(1000) CHARACTER SET UTF8 = ''
)
AS
DECLARE v_names varchar(6000) CHARACTER SET UTF8;
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_right varchar(200) CHARACTER SET UTF8;
DECLARE v_calls smallint = 1;
BEGIN
    v_names = REPLACE(p_calls || ' / ' || p_reads || ' ', ASCII_CHAR(10), ' ');
    WHILE (v_names <> '') DO
    BEGIN
        v_name = UPPER(LEFT(v_names, POSITION(' ', v_names) - 1));
        v_names = SUBSTRING(v_names FROM POSITION(' ', v_names) + 1);
        IF (v_name = '/') THEN
            v_calls = 0;
        ELSE IF (v_name <> '') THEN
        BEGIN
            v_right = 'SELECT ON mq_' || v_name;
            IF (v_calls = 1) THEN
                SELECT 'EXECUTE ON ' || kind || ' ' || TRIM(name)
                FROM (
                    SELECT 'PROCEDURE' AS kind, rdb$procedure_name AS name FROM rdb$procedures WHERE rdb$package_name IS NULL
                    UNION ALL
                    SELECT 'FUNCTION', rdb$function_name FROM rdb$functions WHERE rdb$package_name IS NULL
                ) AS o
                WHERE name IN ('MQ_' || :v_name, 'IMQ_' || :v_name)
                INTO v_right;
            EXECUTE STATEMENT 'GRANT ' || v_right || ' TO ' || REPLACE(p_roles, ' ', ', ');
        END
    END
END
