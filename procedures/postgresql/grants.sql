-- grants: which role may call which function and read which view.
-- Arguments:   none; run after every change of a procedure
-- Returns:     nothing; a notice when this user may not create the roles
-- Errors:      none
-- Transaction: the same as for the procedures that changed
-- Example:     GRANT mq_producer TO shop;

-- Objects with another owner, for example after a restore, get the owner of schema mq.
DO $$
DECLARE
    v_statement text;
BEGIN
    FOR v_statement IN
        SELECT format('ALTER %s %s OWNER TO %s', o.kind, o.name, n.nspowner::regrole)
        FROM pg_namespace AS n
        CROSS JOIN LATERAL (
            SELECT 'SCHEMA' AS kind, i.nspname::text AS name, i.nspowner AS owner FROM pg_namespace AS i WHERE i.nspname = 'mq_internal'
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proowner
            FROM pg_proc AS p WHERE p.pronamespace IN (n.oid, 'mq_internal'::regnamespace)
            UNION ALL
            SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, c.oid::regclass::text, c.relowner
            FROM pg_class AS c WHERE c.relnamespace IN (n.oid, 'mq_internal'::regnamespace) AND c.relkind IN ('r', 'p', 'v')
        ) AS o
        WHERE n.nspname = 'mq' AND o.owner <> n.nspowner
    LOOP
        EXECUTE v_statement;
    END LOOP;
END
$$;

-- After a restore tables have new oids: find the polling tables by their names.
UPDATE mq.polled
SET table_id = coalesce(mq_internal.relation_of(table_schema, table_name), table_id), queue_id = 'mq.polled'::regclass
WHERE queue_id <> 'mq.polled'::regclass;

-- Watched tables store the expression of their key. Replace the slow one of an earlier release by that of plain_json,
-- which depends only on the names and types of the columns.
UPDATE mq.watched AS w
SET key_json = mq_internal.plain_json(c.oid, w.key_names::text[], 'r')
FROM pg_class AS c
WHERE starts_with(w.key_json, '(SELECT') AND c.relkind IN ('r', 'p') AND c.oid = mq_internal.labelled_table(w.label) AND w.key_types = ARRAY(
        SELECT a.atttypid
        FROM unnest(w.key_names) WITH ORDINALITY AS k (name, n)
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = k.name
        ORDER BY k.n
    );

REVOKE ALL ON SCHEMA mq, mq_internal FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA mq, mq_internal FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq, mq_internal FROM PUBLIC;

DO $$
DECLARE
    v_role text;
    v_calls text[];
    v_reads text[];
    v_public text[] := '{}';
    v_call text;
    v_statement text;
    -- Functions that run with the caller's rights call these, which do nothing with a table on which the caller has no
    -- right.
    c_helpers CONSTANT text[] := ARRAY['raise_error', 'require_name', 'require_range', 'reader_name', 'read_failures', 'split_names',
        'find_table', 'find_columns', 'find_one_column', 'row_json', 'relation_of', 'operator_of', 'polled_need', 'require_rights',
        'require_index', 'polled_settings', 'open_polled', 'polled_shape', 'lock_polled', 'drop_polled_batch', 'find_rows',
        'write_rows', 'fail_rows', 'forget_rows', 'put_back_rows', 'find_feed', 'feed_settings', 'feed_positions', 'show_feeds',
        'sync_column', 'move_consumer'];
    c_consumer CONSTANT text[] := ARRAY['take_due', 'take_new', 'due_rows', 'gather_rows', 'pick_rows', 'pick_lost', 'settled_place',
        'polled_marks', 'forget_gone', 'hold_rows', 'move_polled', 'lock_feed', 'move_feed'];
    c_operator CONSTANT text[] := ARRAY['column_without_equality', 'require_status', 'require_distinct_rows', 'require_order',
        'add_polled', 'drop_polled', 'revive_rows', 'add_feed', 'delete_feed', 'primary_key', 'add_watched', 'drop_watched',
        'find_watched', 'is_watched', 'labelled_table', 'any_relation_of', 'add_subscriptions', 'drop_subscriptions',
        'require_actions', 'require_topic', 'report_changes'];
    c_viewer CONSTANT text[] := ARRAY['raise_error', 'require_name', 'relation_of', 'feed_settings', 'sync_column', 'show_feeds'];
    -- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
    c_operator_reads CONSTANT text[] := ARRAY['my_pass', 'my_polled_row', 'message_state', 'message_overview', 'message',
        'ready', 'delayed', 'batch', 'dead', 'grouped', 'group_lock', 'archive', 'mark', 'queue', 'polled_batch', 'polled_row'];
    c_consumer_reads CONSTANT text[] := ARRAY['my_pass', 'my_polled_row'];
    c_viewer_reads CONSTANT text[] := ARRAY['message_overview', 'ready', 'delayed', 'dead', 'grouped'];
BEGIN
    FOREACH v_role IN ARRAY ARRAY['mq_producer', 'mq_consumer', 'mq_operator', 'mq_viewer'] LOOP
        v_calls := CASE v_role
            WHEN 'mq_producer' THEN ARRAY['send', 'send_message', 'send_batch', 'queue_stats',
                'installed_files', 'advance_sequence', 'get_result', 'publish', 'list_bindings',
                'next_occurrence']
            WHEN 'mq_consumer' THEN ARRAY['get_message', 'claim_batch', 'claim_wraparound', 'take_batch', 'complete',
                'complete_batch', 'fail', 'finish_batch', 'release_batch', 'extend_lease', 'rescue_expired',
                'wait_for_message', 'queue_stats', 'installed_files', 'publish_feed', 'fetch_feed', 'advance_feed',
                'feed_stats', 'claim_rows', 'finish_rows', 'extend_rows', 'release_rows', 'peek_rows',
                'set_result', 'get_result', 'next_occurrence', 'report_consumer', 'list_consumers', 'throughput', 'list_tables']
            WHEN 'mq_operator' THEN ARRAY['rescue_expired', 'cancel', 'redrive', 'purge', 'purge_archive', 'set_queue', 'set_group',
                'pause', 'resume', 'queue_stats', 'queue_health', 'installed_files', 'peek', 'create_feed', 'drop_feed',
                'rewind_feed', 'feed_stats', 'watch_table', 'unwatch_table', 'subscribe', 'unsubscribe',
                'list_subscriptions', 'adopt_table', 'release_table', 'retry_rows', 'peek_rows', 'get_result',
                'bind_topic', 'unbind_topic', 'list_bindings', 'set_schedule', 'drop_schedule', 'list_schedules',
                'run_schedule', 'next_occurrence', 'list_queues', 'find_messages', 'list_errors', 'list_consumers', 'throughput',
                'list_tables', 'release_batch', 'extend_lease', 'fail', 'release_rows',
                'extend_rows']
            WHEN 'mq_viewer' THEN ARRAY['queue_stats', 'installed_files', 'queue_health', 'list_queues', 'list_errors',
                'feed_stats', 'list_subscriptions', 'list_bindings', 'list_schedules', 'next_occurrence', 'list_consumers',
                'throughput', 'list_tables']
        END;
        v_public := v_public || v_calls;
        v_calls := v_calls || CASE v_role
            WHEN 'mq_producer' THEN '{}'
            WHEN 'mq_consumer' THEN c_helpers || c_consumer
            WHEN 'mq_operator' THEN c_helpers || c_operator
            WHEN 'mq_viewer' THEN c_viewer
        END;
        v_reads := CASE v_role
            WHEN 'mq_producer' THEN '{}'
            WHEN 'mq_consumer' THEN c_consumer_reads
            WHEN 'mq_operator' THEN c_operator_reads
            WHEN 'mq_viewer' THEN c_viewer_reads
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
                NULL;  -- roles belong to the whole server: an installation in another database has just created it
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA mq, mq_internal TO %I', v_role);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq, mq_internal FROM %I', v_role);
        FOREACH v_call IN ARRAY v_calls LOOP
            EXECUTE (
                SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, v_role)
                FROM pg_proc AS p
                WHERE p.pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace) AND p.proname = v_call
            );
        END LOOP;
        FOREACH v_call IN ARRAY v_reads LOOP
            EXECUTE format('GRANT SELECT ON mq.%I TO %I', v_call, v_role);
        END LOOP;
    END LOOP;
    -- A role that can read the secret can prove any right on any polling table, feed and watched table.
    FOR v_statement IN
        SELECT format('REVOKE ALL ON SCHEMA %I FROM %s CASCADE', n.nspname, g.grantee::regrole)
        FROM pg_namespace AS n
        CROSS JOIN LATERAL aclexplode(n.nspacl) AS g
        WHERE n.nspname = 'mq_internal' AND g.grantee NOT IN (0, n.nspowner)
            AND g.grantee <> ALL (ARRAY(
                SELECT r.oid FROM pg_roles AS r WHERE r.rolname IN ('mq_producer', 'mq_consumer', 'mq_operator', 'mq_viewer')
            ))
        UNION
        SELECT format('REVOKE ALL ON %s FROM %s CASCADE', c.oid::regclass, g.grantee::regrole)
        FROM pg_class AS c
        CROSS JOIN LATERAL aclexplode(c.relacl) AS g
        WHERE c.relnamespace = 'mq_internal'::regnamespace AND g.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE v_statement;
    END LOOP;
    -- The user's own roles keep their grants on the contract's functions; grants on internal functions are revoked.
    FOR v_statement IN
        SELECT DISTINCT format('REVOKE ALL ON FUNCTION %s FROM %s CASCADE', p.oid::regprocedure, g.grantee::regrole)
        FROM pg_proc AS p
        CROSS JOIN LATERAL aclexplode(p.proacl) AS g
        WHERE p.pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace) AND p.proname <> ALL (v_public) AND g.grantee NOT IN (0, p.proowner)
            AND g.grantee <> ALL (ARRAY(
                SELECT r.oid FROM pg_roles AS r WHERE r.rolname IN ('mq_producer', 'mq_consumer', 'mq_operator', 'mq_viewer')
            ))
    LOOP
        EXECUTE v_statement;
    END LOOP;
END
$$;
