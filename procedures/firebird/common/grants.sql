-- grants: the roles, and the rights of the procedures; the other areas' files grant the rest.
--
-- A procedure has its own rights in addition to those of its caller, so callers need no right on tables. Only objects of
-- the owner of mq_message are treated as the queue's, even if others have similar names.

SET TERM ^ ;

EXECUTE BLOCK
AS
DECLARE v_role varchar(31) CHARACTER SET UTF8;
BEGIN
    FOR
        SELECT r.name
        FROM (
            SELECT 'MQ_PRODUCER' AS name FROM rdb$database
            UNION ALL SELECT 'MQ_CONSUMER' FROM rdb$database
            UNION ALL SELECT 'MQ_OPERATOR' FROM rdb$database
            UNION ALL SELECT 'MQ_VIEWER' FROM rdb$database
        ) AS r
        WHERE NOT EXISTS (SELECT 1 FROM rdb$roles AS o WHERE o.rdb$role_name = r.name)
        INTO v_role
    DO
        EXECUTE STATEMENT 'CREATE ROLE ' || v_role;
END^

EXECUTE BLOCK
AS
DECLARE v_owner varchar(63) CHARACTER SET UTF8;
DECLARE v_users varchar(8000) CHARACTER SET UTF8;
DECLARE v_right varchar(400) CHARACTER SET UTF8;
BEGIN
    SELECT rdb$owner_name FROM rdb$relations WHERE rdb$relation_name = 'MQ_MESSAGE' INTO v_owner;
    -- Each procedure gets rights only on the objects that it names: all rights for all procedures would be thirty times
    -- as many. A dynamic statement has the rights of the caller.
    FOR
        SELECT o.rights || o.name, LIST(u.kind || u.name, ', ')
        FROM (
            SELECT TRIM(rdb$relation_name) AS name, 0 AS kind, 'SELECT, INSERT, UPDATE, DELETE ON ' AS rights FROM rdb$relations
            WHERE rdb$relation_name STARTING WITH 'MQ_' AND rdb$owner_name = :v_owner AND rdb$view_blr IS NULL
            UNION ALL
            SELECT TRIM(rdb$relation_name), 1, 'SELECT ON ' FROM rdb$relations
            WHERE rdb$relation_name STARTING WITH 'MQ_' AND rdb$owner_name = :v_owner AND rdb$view_blr IS NOT NULL
            UNION ALL
            SELECT TRIM(rdb$procedure_name), 5, 'EXECUTE ON PROCEDURE ' FROM rdb$procedures
            WHERE (rdb$procedure_name STARTING WITH 'MQ_' OR rdb$procedure_name STARTING WITH 'IMQ_') AND rdb$owner_name = :v_owner AND rdb$package_name IS NULL
            UNION ALL
            SELECT TRIM(rdb$function_name), 15, 'EXECUTE ON FUNCTION ' FROM rdb$functions
            WHERE (rdb$function_name STARTING WITH 'MQ_' OR rdb$function_name STARTING WITH 'IMQ_') AND rdb$owner_name = :v_owner AND rdb$package_name IS NULL
            UNION ALL
            SELECT TRIM(rdb$exception_name), 7, 'USAGE ON EXCEPTION ' FROM rdb$exceptions
            WHERE rdb$exception_name STARTING WITH 'MQ_' AND rdb$owner_name = :v_owner
            UNION ALL
            SELECT TRIM(rdb$generator_name), 14, 'USAGE ON SEQUENCE ' FROM rdb$generators
            WHERE rdb$generator_name STARTING WITH 'MQ_' AND rdb$owner_name = :v_owner
        ) AS o
        JOIN (
            SELECT DISTINCT rdb$depended_on_name AS depended_on, rdb$depended_on_type AS depended_kind, rdb$dependent_name AS dependent,
                rdb$dependent_type AS dependent_kind
            FROM rdb$dependencies
            WHERE (rdb$dependent_name STARTING WITH 'MQ_' OR rdb$dependent_name STARTING WITH 'IMQ_') AND rdb$dependent_type IN (5, 15)
        ) AS d ON d.depended_on = o.name AND d.depended_kind = o.kind
        JOIN (
            SELECT TRIM(rdb$procedure_name) AS name, 5 AS number, 'PROCEDURE ' AS kind FROM rdb$procedures
            WHERE (rdb$procedure_name STARTING WITH 'MQ_' OR rdb$procedure_name STARTING WITH 'IMQ_') AND rdb$owner_name = :v_owner AND rdb$package_name IS NULL
            UNION ALL
            SELECT TRIM(rdb$function_name), 15, 'FUNCTION ' FROM rdb$functions
            WHERE (rdb$function_name STARTING WITH 'MQ_' OR rdb$function_name STARTING WITH 'IMQ_') AND rdb$owner_name = :v_owner AND rdb$package_name IS NULL
        ) AS u ON u.name = d.dependent AND u.number = d.dependent_kind
        GROUP BY 1
        INTO v_right, v_users
    DO
        EXECUTE STATEMENT 'GRANT ' || v_right || ' TO ' || v_users;
    FOR
        SELECT 'SELECT ON ' || TRIM(rdb$relation_name) FROM rdb$relations
        WHERE rdb$relation_name STARTING WITH 'MQ_' AND rdb$owner_name = :v_owner AND rdb$view_blr IS NULL
        INTO v_right
    DO
        EXECUTE STATEMENT 'GRANT ' || v_right || ' TO VIEW mq_message_state';
    -- Rights of PUBLIC, rights of the queue's roles from an earlier release or granted by hand, and what the earlier text of
    -- a procedure needed, such as the file of the core that an area has replaced. Only existing rights are revoked, because
    -- REVOKE of others gives a warning. Only the grantor or an administrator can revoke a grant; runner doctor reports
    -- grants that remain.
    FOR
        SELECT DISTINCT TRIM(IIF(p.rdb$privilege = 'X', 'EXECUTE', IIF(p.rdb$privilege = 'G', 'USAGE', 'ALL'))) || ' ON '
            || TRIM(CASE p.rdb$object_type
                WHEN 5 THEN 'PROCEDURE ' WHEN 7 THEN 'EXCEPTION ' WHEN 14 THEN 'SEQUENCE ' WHEN 15 THEN 'FUNCTION ' ELSE '' END)
            || ' ' || TRIM(p.rdb$relation_name) || ' FROM ' || TRIM(DECODE(p.rdb$user_type, 13, 'ROLE', 5, 'PROCEDURE', 15, 'FUNCTION', '')) || ' '
            || TRIM(p.rdb$user)
            || IIF(p.rdb$grantor = CURRENT_USER, '', ' GRANTED BY "' || REPLACE(TRIM(p.rdb$grantor), '"', '""') || '"')
        FROM rdb$user_privileges AS p
        WHERE (p.rdb$user IN ('MQ_PRODUCER', 'MQ_CONSUMER', 'MQ_OPERATOR', 'MQ_VIEWER') AND p.rdb$user_type = 13
                OR p.rdb$user = 'PUBLIC' AND p.rdb$user_type = 8
                OR p.rdb$user_type IN (5, 15) AND (p.rdb$user STARTING WITH 'MQ_' OR p.rdb$user STARTING WITH 'IMQ_')
                    AND NOT EXISTS (
                        SELECT * FROM rdb$dependencies AS d
                        WHERE d.rdb$dependent_name = p.rdb$user AND d.rdb$dependent_type = p.rdb$user_type
                            AND d.rdb$depended_on_name = p.rdb$relation_name
                            AND IIF(d.rdb$depended_on_type = 1, 0, d.rdb$depended_on_type) = p.rdb$object_type
                    ))
            AND (p.rdb$relation_name STARTING WITH 'MQ_' OR p.rdb$relation_name STARTING WITH 'IMQ_') AND p.rdb$object_type IN (0, 1, 5, 7, 14, 15)
            AND (p.rdb$grantor = CURRENT_USER OR CURRENT_ROLE = 'RDB$ADMIN' OR CURRENT_USER = 'SYSDBA'
                OR CURRENT_USER = (SELECT mon$owner FROM mon$database))
        INTO v_right
    DO
        EXECUTE STATEMENT 'REVOKE ' || v_right;
END^

SET TERM ; ^

-- For future times: DATEADD(1 HOUR TO mq_utc_now()).
EXECUTE PROCEDURE imq_grant_to('mq_producer mq_consumer mq_operator mq_viewer', 'utc_now');
-- For statements on users' tables: see common_tables.
EXECUTE PROCEDURE imq_grant_to('mq_consumer mq_operator', 'escape_json');
