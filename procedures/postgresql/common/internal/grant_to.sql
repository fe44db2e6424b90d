-- grant_to: grants roles the call of functions and the reading of tables and views; the names are separated by blanks.
CREATE OR REPLACE FUNCTION mq_internal.grant_to(p_roles text, p_calls text, p_reads text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_roles CONSTANT text := (
        SELECT string_agg(quote_ident(r.rolname), ', ') FROM pg_roles AS r WHERE r.rolname = ANY (string_to_array(p_roles, ' '))
    );
    v_name text;
    v_functions text;
    v_schema text;
BEGIN
    FOR v_name IN SELECT regexp_split_to_table(p_calls, '[[:space:]]+') LOOP
        CONTINUE WHEN v_name = '' OR v_roles IS NULL;
        SELECT string_agg(p.oid::regprocedure::text, ', '), min(p.pronamespace::regnamespace::text) INTO v_functions, v_schema
        FROM pg_proc AS p
        WHERE p.proname = v_name AND p.pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace);
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', v_schema, v_roles);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', v_functions, v_roles);
    END LOOP;
    FOR v_name IN SELECT regexp_split_to_table(p_reads, '[[:space:]]+') LOOP
        CONTINUE WHEN v_name = '' OR v_roles IS NULL;
        EXECUTE format('GRANT SELECT ON mq.%I TO %s', v_name, v_roles);
    END LOOP;
END
$$;
