-- queue_health: check the database for problems that slow queues down or endanger messages.
-- Arguments:   none
-- Returns:     one row per check: name, verdict (ok, warn or bad), measured (what was measured), unit, detail (what is
--              wrong, and what to do)
-- Errors:      none
-- Transaction: reads only; sees other users' sessions when the owner of the functions is a member of pg_read_all_stats
-- Example:     SELECT * FROM mq.queue_health() WHERE verdict <> 'ok';
--
-- A branch measures one thing and sets the columns. If it fails, its row says so, and the other checks continue.
CREATE OR REPLACE FUNCTION mq.queue_health() RETURNS TABLE (
    name text,
    verdict text,
    measured double precision,
    unit text,
    detail text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    v_row record;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'oldest_transaction', 'oldest_prepared_transaction', 'replication_slot_horizon', 'dead_rows', 'expired_leases',
        'stuck_groups', 'stopped_groups', 'dead_dedup_keys', 'areas', 'changed_objects', 'missing_indexes', 'autovacuum', 'durability'
    ] LOOP
        BEGIN
            CASE name
            WHEN 'oldest_transaction' THEN
                -- A transaction with an old snapshot prevents the removal of every row deleted since.
                SELECT a.pid, a.usename, a.application_name, a.state,
                    extract(epoch FROM clock_timestamp() - a.xact_start) AS seconds INTO v_row
                FROM pg_stat_activity AS a
                WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
                    AND a.xact_start IS NOT NULL
                ORDER BY a.xact_start
                LIMIT 1;
                measured := coalesce(v_row.seconds, 0);
                unit := 'seconds';
                verdict := CASE WHEN measured > 3600 THEN 'bad' WHEN measured > 300 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN v_row.pid IS NULL THEN 'no other transaction is open'
                    -- Not its statement, which may contain a body: it is for members of pg_read_all_stats, not for all operators.
                    ELSE format('process %s, user %s, application %s, %s; while it is open, dead rows cannot be removed; '
                        'to end it: SELECT pg_terminate_backend(%s)', v_row.pid,
                        v_row.usename, coalesce(nullif(v_row.application_name, ''), '(unnamed)'), v_row.state, v_row.pid) END;

            WHEN 'oldest_prepared_transaction' THEN
                SELECT p.gid, p.owner, extract(epoch FROM clock_timestamp() - p.prepared) AS seconds INTO v_row
                FROM pg_prepared_xacts AS p
                WHERE p.database = current_database()
                ORDER BY p.prepared
                LIMIT 1;
                measured := coalesce(v_row.seconds, 0);
                unit := 'seconds';
                verdict := CASE WHEN measured > 3600 THEN 'bad' WHEN measured > 300 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN v_row.gid IS NULL THEN 'none'
                    ELSE format('%s of %s keeps dead rows from being removed; run COMMIT PREPARED or ROLLBACK PREPARED', v_row.gid,
                        v_row.owner) END;

            WHEN 'replication_slot_horizon' THEN
                SELECT s.slot_name, greatest(age(s.xmin), age(s.catalog_xmin)) AS transactions INTO v_row
                FROM pg_replication_slots AS s
                WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
                ORDER BY 2 DESC
                LIMIT 1;
                measured := coalesce(v_row.transactions, 0);
                unit := 'transactions';
                verdict := CASE WHEN measured > 10000000 THEN 'bad' WHEN measured > 1000000 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN v_row.slot_name IS NULL THEN 'no slot keeps dead rows'
                    ELSE format('slot %s keeps dead rows from being removed; let its consumer catch up, or drop the slot', v_row.slot_name) END;

            WHEN 'dead_rows' THEN
                RETURN QUERY
                    SELECT 'dead_rows_' || t.relname, v.verdict, t.n_dead_tup::double precision, 'rows',
                        format('%s live rows; last autovacuum %s', t.n_live_tup,
                            coalesce(to_char(t.last_autovacuum AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), 'never'))
                        || CASE WHEN v.verdict = 'ok' THEN '' ELSE '; too many dead rows: end old transactions, then VACUUM mq.' || t.relname END
                    FROM pg_stat_user_tables AS t
                    CROSS JOIN LATERAL (
                        SELECT CASE WHEN t.n_dead_tup > 1000000 + 2 * t.n_live_tup THEN 'bad'
                            WHEN t.n_dead_tup > 100000 + t.n_live_tup / 2 THEN 'warn' ELSE 'ok' END AS verdict
                    ) AS v
                    WHERE t.schemaname = 'mq' AND t.relname IN ('message', 'ready', 'delayed', 'batch', 'mark', 'grouped')
                    ORDER BY t.relname;
                CONTINUE;

            WHEN 'expired_leases' THEN
                SELECT count(*) AS batches, coalesce(extract(epoch FROM clock_timestamp() - min(b.lease_until)), 0) AS seconds
                INTO v_row
                FROM (SELECT lease_until FROM mq.batch WHERE lease_until <= clock_timestamp() LIMIT 10000) AS b;
                measured := v_row.batches;
                unit := 'claims';
                verdict := CASE WHEN v_row.seconds > 3600 THEN 'bad' WHEN v_row.seconds > 60 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN measured = 0 THEN 'none'
                    ELSE format('the oldest expired %s s ago; claims of the type rescue them, or run SELECT mq.rescue_expired()',
                        round(v_row.seconds)) END;

            WHEN 'stuck_groups' THEN
                SELECT count(*) AS groups, min(s.type) AS type INTO v_row
                FROM (
                    SELECT q.type
                    FROM (SELECT type FROM mq.queue WHERE grouped AND type <> '' LIMIT 1000) AS q
                    CROSS JOIN LATERAL mq_internal.stuck_groups(q.type, 1000) AS g
                    LIMIT 1000
                ) AS s;
                measured := v_row.groups;
                unit := 'groups';
                verdict := CASE WHEN measured > 0 THEN 'bad' ELSE 'ok' END;
                detail := CASE WHEN measured = 0 THEN 'none'
                    ELSE format('groups of %s have ready messages that no claim finds; to repair them: SELECT mq.rescue_expired(%L)',
                        v_row.type, v_row.type) END;

            WHEN 'stopped_groups' THEN
                SELECT count(DISTINCT (m.type, m.group_key)) AS groups, (array_agg(m ORDER BY m.id))[1] AS first INTO v_row
                FROM (
                    SELECT e.id FROM (SELECT type FROM mq.queue WHERE dead_stops_group LIMIT 1000) AS q
                    CROSS JOIN LATERAL (SELECT d.id FROM mq.dead AS d WHERE d.type = q.type ORDER BY d.died_at, d.id LIMIT 10000) AS e
                    LIMIT 10000
                ) AS k
                JOIN mq.message AS m ON m.id = k.id AND m.group_key IS NOT NULL;
                measured := v_row.groups;
                unit := 'groups';
                verdict := CASE WHEN measured > 0 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN measured = 0 THEN 'none'
                    ELSE format('dead letter %s stops the group %L of %s; SELECT mq.redrive(%s) retries it, SELECT mq.cancel(%s) '
                        'deletes it', (v_row.first).id, (v_row.first).group_key, (v_row.first).type, (v_row.first).id,
                        (v_row.first).id) END;

            WHEN 'dead_dedup_keys' THEN
                SELECT count(*) AS keys, (array_agg(m ORDER BY m.id))[1] AS first INTO v_row
                FROM (SELECT e.id FROM mq.dead AS e ORDER BY e.id LIMIT 10000) AS k
                JOIN mq.message AS m ON m.id = k.id AND m.dedup_key IS NOT NULL;
                measured := v_row.keys;
                unit := 'keys';
                verdict := CASE WHEN measured > 0 THEN 'warn' ELSE 'ok' END;
                detail := CASE WHEN measured = 0 THEN 'none'
                    ELSE format('dead letter %s of %s holds the dedup_key %L: send_message with this key sends nothing; '
                        'SELECT mq.redrive(%s) retries it, SELECT mq.cancel(%s) deletes it', (v_row.first).id, (v_row.first).type,
                        (v_row.first).dedup_key, (v_row.first).id, (v_row.first).id) END;

            WHEN 'areas' THEN
                RETURN QUERY SELECT * FROM mq_internal.area_health();
                CONTINUE;

            WHEN 'changed_objects' THEN
                SELECT count(*) AS objects, string_agg(i.name, ', ' ORDER BY i.name) AS names INTO v_row
                FROM mq_internal.installed_files() AS i
                WHERE i.changed = 1;
                measured := v_row.objects;
                unit := 'objects';
                verdict := CASE WHEN measured > 0 THEN 'bad' ELSE 'ok' END;
                detail := coalesce('missing or changed by hand: ' || v_row.names || '; run the installation again', 'none');

            WHEN 'missing_indexes' THEN
                SELECT count(*) AS indexes, string_agg(i.name, ', ' ORDER BY i.name) AS names INTO v_row
                FROM mq.installed AS i
                WHERE i.kind = 'index' AND NOT EXISTS (
                    SELECT FROM pg_index AS x
                    JOIN pg_class AS c ON c.oid = x.indexrelid
                    JOIN pg_class AS t ON t.oid = x.indrelid
                    WHERE c.relnamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace)
                        AND concat(t.relname, '.', c.relname) = i.name AND x.indisvalid
                );
                measured := v_row.indexes;
                unit := 'indexes';
                verdict := CASE WHEN measured > 0 THEN 'bad' ELSE 'ok' END;
                detail := coalesce('missing or invalid: ' || v_row.names || '; REINDEX it, or create it as in the migrations', 'none');

            WHEN 'autovacuum' THEN
                measured := current_setting('autovacuum')::boolean::integer;
                unit := 'flag';
                verdict := CASE WHEN measured = 1 THEN 'ok' ELSE 'bad' END;
                detail := CASE WHEN measured = 1 THEN 'on' ELSE 'off: dead rows are never removed; set autovacuum = on' END;

            WHEN 'durability' THEN
                measured := (current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean)::integer;
                unit := 'flag';
                verdict := CASE WHEN measured = 0 THEN 'bad' WHEN current_setting('synchronous_commit') = 'off' THEN 'warn' ELSE 'ok' END;
                detail := format('fsync %s, full_page_writes %s, synchronous_commit %s; if one is off, a crash can lose messages',
                    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'));
            END CASE;
        -- One check that fails, such as for a lack of rights, must not hide the others.
        EXCEPTION WHEN OTHERS THEN
            verdict := 'bad';
            measured := NULL;
            unit := '';
            detail := 'this check failed: ' || regexp_replace(SQLERRM, '[[:space:]]+', ' ', 'g');
        END;
        RETURN NEXT;
    END LOOP;
END
$$;
