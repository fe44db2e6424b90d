-- operator_of: return a comparison operator of a type's default order, qualified by its schema.
-- Arguments: p_strategy (1 <, 2 <=, 3 =, 4 >=, 5 >)
-- Returns: for example OPERATOR(pg_catalog.=); NULL when the type has no order
CREATE OR REPLACE FUNCTION mq_internal.operator_of(p_type oid, p_strategy bigint) RETURNS text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE d (base) AS (
        -- A domain uses the operators of its base type.
        SELECT p_type
        UNION ALL
        SELECT t.typbasetype FROM d JOIN pg_catalog.pg_type AS t ON t.oid = d.base WHERE t.typbasetype <> 0
    )
    SELECT CASE
        -- Built-in types, and types that are compared by their parts: arrays, enums, ranges, rows.
        WHEN t.oid < 16384 OR t.typtype IN ('e', 'r', 'm', 'c') OR t.typcategory = 'A'
            THEN format('OPERATOR(pg_catalog.%s)', (ARRAY['<', '<=', '=', '>=', '>'])[p_strategy])
        ELSE (
            SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname) FROM pg_catalog.pg_opclass AS c
            JOIN pg_catalog.pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
            JOIN pg_catalog.pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amoplefttype = t.oid AND a.amoprighttype = t.oid
                AND a.amopstrategy = p_strategy
            JOIN pg_catalog.pg_operator AS o ON o.oid = a.amopopr
            JOIN pg_catalog.pg_namespace AS n ON n.oid = o.oprnamespace
            WHERE c.opcintype = t.oid AND c.opcdefault
            LIMIT 1
        ) END
    FROM d
    JOIN pg_catalog.pg_type AS t ON t.oid = d.base
    WHERE t.typbasetype = 0;
$$;
