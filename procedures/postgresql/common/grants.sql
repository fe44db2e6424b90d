-- grants: the roles, one owner for all objects, and no rights for others; the other areas' files grant the rest.

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

REVOKE ALL ON SCHEMA mq, mq_internal FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA mq, mq_internal FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq, mq_internal FROM PUBLIC;

DO $$
DECLARE
    v_role text;
    v_statement text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['mq_producer', 'mq_consumer', 'mq_operator', 'mq_viewer'] LOOP
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
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq FROM %I', v_role);
    END LOOP;
    -- Other roles keep their grants on public functions, but get none in mq_internal: a role that can read the secret
    -- can prove any right on any polling table, feed and watched table.
    FOR v_statement IN
        SELECT format('REVOKE ALL ON %s FROM %s CASCADE', o.name, g.grantee::regrole)
        FROM (
            SELECT 'SCHEMA ' || n.nspname, n.nspacl, n.nspowner FROM pg_namespace AS n WHERE n.nspname = 'mq_internal'
            UNION ALL
            SELECT 'FUNCTION ' || p.oid::regprocedure, p.proacl, p.proowner
            FROM pg_proc AS p WHERE p.pronamespace = 'mq_internal'::regnamespace
            UNION ALL
            SELECT c.oid::regclass::text, c.relacl, c.relowner
            FROM pg_class AS c WHERE c.relnamespace = 'mq_internal'::regnamespace
        ) AS o (name, acl, owner)
        CROSS JOIN LATERAL (SELECT DISTINCT a.grantee FROM aclexplode(o.acl) AS a) AS g
        WHERE g.grantee NOT IN (0, o.owner)
    LOOP
        EXECUTE v_statement;
    END LOOP;
END
$$;
