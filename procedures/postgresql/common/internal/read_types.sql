-- read_types: read a list of types, one per line (see split_list).
-- Returns: 1 to 1,000 types in the order of the list, each once
CREATE OR REPLACE FUNCTION mq_internal.read_types(p_types text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    v_types text[];
    v_bad bigint;
BEGIN
    SELECT array_agg(t.item ORDER BY t.n), min(t.n) FILTER (WHERE char_length(t.item) NOT BETWEEN 1 AND 200)
    INTO v_types, v_bad
    FROM (SELECT l.item, min(l.n) AS n FROM mq_internal.split_list('types', p_types) AS l GROUP BY l.item) AS t;
    IF v_bad IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            format('types: line %s: must be 1 to 200 characters', v_bad));
    ELSIF cardinality(v_types) BETWEEN 1 AND 1000 IS NOT TRUE THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            format('types: must be 1 to 1,000 types, one per line, not %s', coalesce(cardinality(v_types), 0)));
    END IF;
    RETURN v_types;
END
$$;
