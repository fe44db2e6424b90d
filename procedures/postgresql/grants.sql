-- grants: who may call what. Roles are given functions only, no table; nobody else is given anything.
-- Arguments:   none; it is run after every change of a procedure
-- Returns:     nothing; a notice when this user may not create the roles
-- Errors:      none
-- Transaction: one with the procedures it is about
-- Example:     GRANT mq_producer TO shop;

REVOKE ALL ON SCHEMA mq FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA mq FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq FROM PUBLIC;

DO $$
DECLARE
    v_role text;
    v_calls text[];
    v_call text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['mq_producer', 'mq_consumer', 'mq_operator'] LOOP
        v_calls := CASE v_role
            WHEN 'mq_producer' THEN ARRAY['send', 'send_message', 'send_batch', 'queue_stats',
                'installed_files', 'advance_sequence']
            WHEN 'mq_consumer' THEN ARRAY['get_message', 'claim_batch', 'claim_wraparound', 'take_batch', 'complete',
                'complete_batch', 'fail', 'finish_batch', 'release_batch', 'extend_lease', 'rescue_expired',
                'wait_for_message', 'queue_stats', 'installed_files', 'publish_feed', 'fetch_feed', 'advance_feed',
                'feed_stats', 'claim_rows', 'finish_rows', 'extend_rows', 'release_rows', 'peek_rows']
            WHEN 'mq_operator' THEN ARRAY['rescue_expired', 'cancel', 'redrive', 'purge', 'purge_archive', 'set_queue',
                'pause', 'resume', 'queue_stats', 'queue_health', 'installed_files', 'peek', 'create_feed', 'drop_feed',
                'rewind_feed', 'feed_stats', 'watch_table', 'unwatch_table', 'subscribe', 'unsubscribe',
                'list_subscriptions', 'adopt_table', 'release_table', 'retry_rows', 'peek_rows']
        END;
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
            END IF;
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role % does not exist and % may not create it (CREATEROLE): nothing is granted to it',
                    v_role, current_user;
                CONTINUE;
            WHEN duplicate_object OR unique_violation THEN
                NULL;  -- roles belong to the whole server: another of its databases was installing at this moment
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA mq TO %I', v_role);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq FROM %I', v_role);
        FOREACH v_call IN ARRAY v_calls LOOP
            EXECUTE (
                SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, v_role)
                FROM pg_proc AS p
                WHERE p.pronamespace = 'mq'::regnamespace AND p.proname = v_call
            );
        END LOOP;
    END LOOP;
END
$$;
