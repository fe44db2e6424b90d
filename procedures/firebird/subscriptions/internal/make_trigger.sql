-- make_trigger: create the trigger of a watched table, empty and inactive, and grant it its rights, where they are missing.
-- Arguments:   p_trigger (its name), p_table (quoted), p_label (the table, as messages name it), p_expression (SQL with the
--              queue's functions that the trigger will call)
--
-- The rights are granted to the trigger: writers of the table need none.
CREATE OR ALTER PROCEDURE imq_make_trigger (
    p_trigger varchar(31) CHARACTER SET UTF8, p_table varchar(130) CHARACTER SET UTF8,
    p_label varchar(63) CHARACTER SET UTF8, p_expression mq_text
)
AS
DECLARE v_owner varchar(63) CHARACTER SET UTF8;
DECLARE v_right varchar(200) CHARACTER SET UTF8;
BEGIN
    IF (NOT EXISTS (SELECT 1 FROM rdb$triggers WHERE rdb$trigger_name = :p_trigger)) THEN
        EXECUTE STATEMENT 'CREATE TRIGGER ' || p_trigger || ' FOR ' || p_table
            || ' INACTIVE AFTER INSERT OR UPDATE OR DELETE POSITION 0 AS BEGIN END';
    -- Another user may just have created a trigger of that name: it must not get the rights.
    IF (NOT EXISTS (SELECT 1 FROM rdb$triggers AS t WHERE t.rdb$trigger_name = :p_trigger AND t.rdb$relation_name = :p_label)) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', p_label || ': ' || p_trigger
            || ' is the trigger of another table: call watch_table again');
    SELECT TRIM(rdb$owner_name) FROM rdb$relations WHERE rdb$relation_name = 'MQ_MESSAGE' INTO v_owner;
    FOR
        SELECT TRIM(r.verb) || ' ' || r.name
        FROM (
            SELECT 'SELECT ON' AS verb, 'MQ_SUBSCRIPTION' AS name FROM rdb$database
            UNION ALL
            SELECT 'EXECUTE ON PROCEDURE', 'IMQ_SEND_CHANGES' FROM rdb$database
            UNION ALL
            SELECT 'EXECUTE ON FUNCTION', TRIM(f.rdb$function_name) FROM rdb$functions AS f
            WHERE f.rdb$function_name STARTING WITH 'IMQ_' AND f.rdb$owner_name = :v_owner AND f.rdb$package_name IS NULL
                AND POSITION(LOWER(TRIM(f.rdb$function_name)) || '(' IN :p_expression) > 0
        ) AS r
        WHERE NOT EXISTS (
            SELECT 1 FROM rdb$user_privileges AS p
            WHERE p.rdb$user = :p_trigger AND p.rdb$user_type = 2 AND p.rdb$relation_name = r.name
        )
        INTO v_right
    DO
    BEGIN
        EXECUTE STATEMENT 'GRANT ' || v_right || ' TO TRIGGER ' || p_trigger;
        WHEN ANY DO
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table', p_label || ': ' || TRIM(CURRENT_USER)
                || ' may not grant its trigger ' || TRIM(v_right) || ': let ' || v_owner
                || ' call this, the owner of the queue, or a user with all rights');
    END
END
