-- require_status: refuse status values that the column cannot hold or distinguish.
-- Arguments:   p_table, p_column (as in the catalog), p_ready, p_active, p_done, p_error, p_delete (1: delete done rows)
--
-- The value alone is tried, not a row: against the type, the CHECK of a domain, and CHECKs of the table that need no other
-- column.
CREATE OR ALTER PROCEDURE imq_require_status (
    p_table varchar(63) CHARACTER SET UTF8, p_column varchar(63) CHARACTER SET UTF8, p_ready mq_text, p_active mq_text,
    p_done mq_text, p_error mq_text, p_delete smallint
)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_domain varchar(130) CHARACTER SET UTF8;
DECLARE v_type varchar(120) CHARACTER SET UTF8;
DECLARE v_nullable smallint;
DECLARE v_n integer = 0;
DECLARE v_other integer; DECLARE v_bad integer;
DECLARE v_argument varchar(30) CHARACTER SET ASCII;
DECLARE v_value mq_status;
DECLARE v_check mq_text;
BEGIN
    SELECT quoted, type, nullable FROM imq_find_columns('status_column', :p_table, '"' || REPLACE(:p_column, '"', '""') || '"')
    INTO v_quoted, v_type, v_nullable;
    IF (p_error IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'error_value: must not be NULL with a status_column');
    IF (p_done IS NULL AND p_delete = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'done_value: must not be NULL with a status_column and keep');
    IF (p_ready IS NULL AND v_nullable = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'ready_value: must not be NULL, because ' || p_column || ' is NOT NULL');
    SELECT '"' || REPLACE(TRIM(rdb$field_source), '"', '""') || '"' FROM rdb$relation_fields
    WHERE rdb$relation_name = :p_table AND rdb$field_name = :p_column AND rdb$field_source NOT STARTING WITH 'RDB$'
    INTO v_domain;
    WHILE (v_n < 4) DO
    BEGIN
        v_argument = TRIM(CASE v_n
            WHEN 0 THEN 'ready_value' WHEN 1 THEN 'active_value' WHEN 2 THEN 'done_value' ELSE 'error_value' END);
        v_check = CASE v_n WHEN 0 THEN p_ready WHEN 1 THEN p_active WHEN 2 THEN p_done ELSE p_error END;
        IF (CHAR_LENGTH(v_check) > 1000) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_argument || ': must be at most 1,000 characters');
        v_value = v_check;
        IF (v_value IS NOT NULL) THEN
        BEGIN
            v_bad = 0;
            BEGIN
                EXECUTE STATEMENT ('SELECT CAST(CAST(? AS mq_status) AS ' || COALESCE(v_domain, v_type)
                    || ') FROM rdb$database') (v_value)
                    INTO v_check;
                WHEN ANY DO
                    v_bad = 1;
            END
            IF (v_bad = 0) THEN
                FOR SELECT t.rdb$trigger_source
                    FROM rdb$relation_constraints AS r
                    JOIN rdb$check_constraints AS c ON c.rdb$constraint_name = r.rdb$constraint_name
                    JOIN rdb$triggers AS t ON t.rdb$trigger_name = c.rdb$trigger_name
                    WHERE r.rdb$relation_name = :p_table AND r.rdb$constraint_type = 'CHECK' AND t.rdb$trigger_type = 1
                    INTO v_check
                DO
                BEGIN
                    EXECUTE STATEMENT ('SELECT 1 FROM (SELECT CAST(CAST(? AS mq_status) AS ' || v_type || ') AS ' || v_quoted
                        || ' FROM rdb$database) AS r WHERE NOT (' || SUBSTRING(v_check FROM 6) || ')') (v_value)
                        INTO v_bad;
                    WHEN ANY DO
                        -- This CHECK needs other columns.
                        v_check = NULL;
                END
            IF (v_bad = 1) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                    v_argument || ': "' || LEFT(v_value, 60) || '" cannot be stored in ' || p_column);
            v_other = 0;
            WHILE (v_other < v_n) DO
            BEGIN
                v_check = CASE v_other WHEN 0 THEN p_ready WHEN 1 THEN p_active ELSE p_done END;
                IF (v_check IS NOT NULL) THEN
                    EXECUTE STATEMENT ('SELECT 1 FROM rdb$database WHERE CAST(CAST(? AS mq_status) AS ' || v_type
                        || ') = CAST(CAST(? AS mq_status) AS ' || v_type || ')') (v_value, CAST(v_check AS mq_status))
                        INTO v_bad;
                IF (v_bad = 1) THEN
                    EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_argument || ': must differ from '
                        || TRIM(CASE v_other WHEN 0 THEN 'ready_value' WHEN 1 THEN 'active_value' ELSE 'done_value' END));
                v_other = v_other + 1;
            END
        END
        v_n = v_n + 1;
    END
END
