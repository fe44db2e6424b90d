-- object_fingerprint: a hash of an object's definition in the catalog, to detect changes made by hand.
-- Arguments: p_name (a function of schema mq or mq_internal, or a view)
--
-- One query calls it for some hundred objects. With a low jit_above_cost PostgreSQL would compile each call: hence jit =
-- off.
CREATE OR REPLACE FUNCTION mq_internal.object_fingerprint(p_name text) RETURNS text
LANGUAGE sql SET search_path = mq, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
    SELECT md5(string_agg(o.definition, E'\n' ORDER BY o.definition))
    FROM (
        SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p
        WHERE p.pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace) AND p.proname = p_name
        UNION ALL
        SELECT pg_get_viewdef(c.oid) FROM pg_class AS c
        WHERE c.relnamespace = 'mq'::regnamespace AND c.relname = p_name AND c.relkind = 'v'
    ) AS o (definition);
$$;
