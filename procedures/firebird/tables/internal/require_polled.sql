-- require_polled: refuse a caller who may not read a polling table, and a table that has replaced the adopted one.
-- Arguments:   p_name (of the polling table)
CREATE OR ALTER PROCEDURE imq_require_polled (p_name mq_name)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8; DECLARE v_owner varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
BEGIN
    SELECT table_name, table_owner FROM mq_polled WHERE name = :p_name INTO v_table, v_owner;
    SELECT quoted FROM imq_find_table('table', '"' || REPLACE(:v_table, '"', '""') || '"') INTO v_quoted;
    IF (NOT EXISTS (SELECT * FROM rdb$relations WHERE rdb$relation_name = :v_table AND rdb$owner_name = :v_owner)) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', LEFT(p_name, 100) || ': ' || v_quoted
            || ' is not the table that was adopted but another of its name: call unadopt_table, then adopt_table again');
    EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
END
