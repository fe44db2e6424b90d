-- grants: which role may call which procedure and read which view. The procedures get their rights on tables.
-- Arguments:   none; run after every change of a procedure
-- Returns:     nothing
-- Errors:      none
-- Transaction: one per statement; the rights take effect when it commits
-- Example:     GRANT mq_producer TO shop;
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
    -- Rights of PUBLIC, and rights of the queue's roles from an earlier release or granted by hand. Only existing rights
    -- are revoked, because REVOKE of others gives a warning. Only the grantor or an administrator can revoke a grant;
    -- runner doctor reports grants that remain.
    FOR
        SELECT DISTINCT TRIM(IIF(p.rdb$privilege = 'X', 'EXECUTE', IIF(p.rdb$privilege = 'G', 'USAGE', 'ALL'))) || ' ON '
            || TRIM(CASE p.rdb$object_type
                WHEN 5 THEN 'PROCEDURE ' WHEN 7 THEN 'EXCEPTION ' WHEN 14 THEN 'SEQUENCE ' WHEN 15 THEN 'FUNCTION ' ELSE '' END)
            || ' ' || TRIM(p.rdb$relation_name) || ' FROM ' || TRIM(IIF(p.rdb$user_type = 13, 'ROLE ', '')) || ' '
            || TRIM(p.rdb$user)
            || IIF(p.rdb$grantor = CURRENT_USER, '', ' GRANTED BY "' || REPLACE(TRIM(p.rdb$grantor), '"', '""') || '"')
        FROM rdb$user_privileges AS p
        WHERE (p.rdb$user IN ('MQ_PRODUCER', 'MQ_CONSUMER', 'MQ_OPERATOR', 'MQ_VIEWER') AND p.rdb$user_type = 13
                OR p.rdb$user = 'PUBLIC' AND p.rdb$user_type = 8)
            AND (p.rdb$relation_name STARTING WITH 'MQ_' OR p.rdb$relation_name STARTING WITH 'IMQ_') AND p.rdb$object_type IN (0, 1, 5, 7, 14, 15)
            AND (p.rdb$grantor = CURRENT_USER OR CURRENT_ROLE = 'RDB$ADMIN' OR CURRENT_USER = 'SYSDBA'
                OR CURRENT_USER = (SELECT mon$owner FROM mon$database))
        INTO v_right
    DO
        EXECUTE STATEMENT 'REVOKE ' || v_right;
END^

-- An earlier release granted rights on users' tables to this procedure, which is no longer needed. Dropping it drops the
-- grants.
EXECUTE BLOCK
AS
BEGIN
    IF (EXISTS (SELECT 1 FROM rdb$procedures AS p JOIN rdb$relations AS r ON r.rdb$relation_name = 'MQ_MESSAGE'
        WHERE p.rdb$procedure_name = 'MQ_USE_TABLE' AND p.rdb$owner_name = r.rdb$owner_name)) THEN
        EXECUTE STATEMENT 'DROP PROCEDURE mq_use_table';
END^

SET TERM ; ^

-- Statements on users' tables run with the caller's rights and call these functions, which read and write no data.
GRANT EXECUTE ON FUNCTION imq_escape_json TO mq_consumer, mq_operator;
GRANT EXECUTE ON FUNCTION imq_number_text TO mq_consumer, mq_operator;
GRANT EXECUTE ON FUNCTION imq_base64 TO mq_consumer, mq_operator;
GRANT EXECUTE ON FUNCTION imq_utf8_bytes TO mq_consumer, mq_operator;

-- For future times: DATEADD(1 HOUR TO mq_utc_now()).
GRANT EXECUTE ON FUNCTION mq_utc_now TO mq_producer, mq_consumer, mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_send TO mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_message TO mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_batch TO mq_producer;
GRANT EXECUTE ON PROCEDURE mq_get_message TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_batch TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_wraparound TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_take_batch TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete_batch TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_fail TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_finish_batch TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_release_batch TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_extend_lease TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_rescue_expired TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_wait_for_message TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_cancel TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_redrive TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge_archive TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_set_queue TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_pause TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_resume TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_queue_stats TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_queue_health TO mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_installed_files TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_peek TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_advance_sequence TO mq_producer;
GRANT EXECUTE ON PROCEDURE mq_create_feed TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_drop_feed TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_publish_feed TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_fetch_feed TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_advance_feed TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_rewind_feed TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_feed_stats TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_watch_table TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unwatch_table TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_subscribe TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unsubscribe TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_subscriptions TO mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_set_result TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_get_result TO mq_operator, mq_consumer, mq_producer;
GRANT EXECUTE ON PROCEDURE mq_bind_topic TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unbind_topic TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_bindings TO mq_operator, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_publish TO mq_producer;
GRANT EXECUTE ON PROCEDURE mq_set_schedule TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_drop_schedule TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_schedules TO mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_run_schedule TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_next_occurrence TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_adopt_table TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_release_table TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_claim_rows TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_finish_rows TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_extend_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_release_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_retry_rows TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_peek_rows TO mq_operator, mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_list_tables TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_list_queues TO mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_list_errors TO mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_find_messages TO mq_operator;
GRANT EXECUTE ON PROCEDURE mq_report_consumer TO mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_list_consumers TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_throughput TO mq_operator, mq_consumer, mq_viewer;

-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
GRANT SELECT ON mq_message_state TO mq_operator;
GRANT SELECT ON mq_message_overview TO mq_operator, mq_viewer;
GRANT SELECT ON mq_message TO mq_operator;
GRANT SELECT ON mq_ready TO mq_operator, mq_viewer;
GRANT SELECT ON mq_delayed TO mq_operator, mq_viewer;
GRANT SELECT ON mq_batch TO mq_operator;
GRANT SELECT ON mq_dead TO mq_operator, mq_viewer;
GRANT SELECT ON mq_grouped TO mq_operator, mq_viewer;
GRANT SELECT ON mq_group_lock TO mq_operator;
GRANT SELECT ON mq_archive TO mq_operator;
GRANT SELECT ON mq_mark TO mq_operator;
GRANT SELECT ON mq_queue TO mq_operator;
GRANT SELECT ON mq_polled_batch TO mq_operator;
GRANT SELECT ON mq_polled_row TO mq_operator;
GRANT SELECT ON mq_claimed TO mq_operator;
GRANT SELECT ON mq_message_state TO VIEW mq_message_overview;
