-- read_outcomes: read the list of outcomes that finish_batch, finish_messages and finish_rows take.
-- Arguments: p_outcomes (a flat JSON object per line: id, error, retry_after_seconds, dead, released)
-- Returns: id, retry (NULL: the default backoff; -1: dead; -2: released), error (NULL: did not fail)
CREATE OR REPLACE FUNCTION mq_internal.read_outcomes(p_outcomes text) RETURNS TABLE (
    id bigint, retry integer, error text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_problem text;
    v_ids bigint[];
    v_retries integer[];
    v_errors text[];
BEGIN
    BEGIN
        -- All lines in one statement.
        SELECT (array_agg(format('line %s: %s', r.n, r.problem) ORDER BY r.n) FILTER (WHERE r.problem IS NOT NULL))[1],
            array_agg(r.id), array_agg(r.retry), array_agg(r.error)
        INTO v_problem, v_ids, v_retries, v_errors
        FROM (
            SELECT l.n, p.problem, o.error, CASE WHEN p.problem IS NULL THEN o.id::bigint END AS id,
                CASE WHEN p.problem IS NULL THEN CASE WHEN o.released THEN -2 WHEN o.dead THEN -1 ELSE o.retry::integer END END AS retry
            FROM string_to_table(p_outcomes, E'\n') WITH ORDINALITY AS l (line, n)
            CROSS JOIN LATERAL (
                SELECT count(*) <> count(DISTINCT m.key COLLATE "C") AS is_twice,
                    max(m.key) FILTER (WHERE m.key NOT IN ('id', 'error', 'retry_after_seconds', 'dead', 'released')) AS unknown,
                    max(m.value::text) FILTER (WHERE m.key = 'id') AS id,
                    max(json_typeof(m.value)) FILTER (WHERE m.key = 'error') AS kind,
                    max(m.value #>> '{}') FILTER (WHERE m.key = 'error') AS error,
                    max(nullif(m.value::text, 'null')) FILTER (WHERE m.key = 'retry_after_seconds') AS retry,
                    bool_or(m.value::text IN ('true', '1')) FILTER (WHERE m.key = 'dead') AS dead,
                    bool_or(m.value::text IN ('true', '1')) FILTER (WHERE m.key = 'released') AS released,
                    min(m.key) FILTER (
                        WHERE m.key IN ('dead', 'released') AND m.value::text NOT IN ('true', '1', 'false', '0', 'null')
                    ) AS no_flag
                FROM json_each(l.line::json) AS m (key, value)
            ) AS o
            CROSS JOIN LATERAL (
                SELECT CASE
                    WHEN o.is_twice THEN ''
                    WHEN o.unknown IS NOT NULL
                        THEN 'the names are id, error, retry_after_seconds, dead and released, not ' || o.unknown
                    WHEN o.id ~ '^[0-9]{1,18}$' IS NOT TRUE THEN 'id must be a number of 1 to 18 digits'
                    WHEN o.kind NOT IN ('string', 'null') THEN 'error must be a text'
                    WHEN o.retry !~ '^[0-9]{1,9}$' OR lpad(o.retry, 9, '0') > '315360000'
                        THEN 'retry_after_seconds must be 0 to 315,360,000'
                    WHEN o.no_flag IS NOT NULL THEN o.no_flag || ' must be 0 or 1'
                    WHEN o.error IS NULL AND (o.dead OR o.retry IS NOT NULL)
                        THEN 'retry_after_seconds and dead need an error'
                    WHEN o.dead AND o.retry IS NOT NULL THEN 'dead excludes retry_after_seconds'
                    WHEN o.released AND o.error IS NOT NULL THEN 'released excludes error'
                END AS problem
            ) AS p
            WHERE l.line <> ''
        ) AS r;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        v_problem := '';
    END;
    IF v_problem IS NOT NULL THEN
        -- Raises the error of the first line that is no such object at all.
        PERFORM mq_internal.read_object(l.line, 'outcomes: line ' || l.n)
        FROM string_to_table(p_outcomes, E'\n') WITH ORDINALITY AS l (line, n)
        WHERE l.line <> '';
    ELSIF (SELECT count(DISTINCT i) < count(*) FROM unnest(v_ids) AS i) THEN
        v_problem := 'an id is given twice';
    END IF;
    IF v_problem IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'outcomes: ' || v_problem);
    END IF;
    RETURN QUERY
        SELECT u.id, u.retry, u.error
        FROM unnest(v_ids, v_retries, v_errors) AS u (id, retry, error);
END
$$;
