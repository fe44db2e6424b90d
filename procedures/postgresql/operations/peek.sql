-- peek: list messages without claiming them.
-- Arguments:   p_type (1 to 200 characters), p_state (N: in claim order, ready before delayed; A; E and C: the newest
--              first; NULL: N), p_size (1 to 10,000; NULL: 10), p_body_length (characters of each body, 0 to 16,777,216;
--              NULL: all)
-- Returns:     up to p_size messages with their state, reader, times and error
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT id, attempts, error FROM mq.peek('email', 'E', 20);
CREATE OR REPLACE FUNCTION mq.peek(
    p_type text,
    p_state text DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    p_body_length bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, state text, body text, headers text, priority integer, group_key text, dedup_key text,
    attempts integer, created_at timestamptz, source text, run_at timestamptz, reader text, batch_key uuid,
    lease_until timestamptz, changed_at timestamptz, error text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_state text := coalesce(p_state, 'N');
    v_size integer := coalesce(p_size, 10);
    -- The longest body.
    v_length integer := coalesce(p_body_length, 16777216);
    v_rows bigint;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF v_state NOT IN ('N', 'A', 'E', 'C') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'state: must be N, A, E or C');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_range('body_length', p_body_length, 0, 16777216);
    IF v_state = 'N' THEN
        IF (mq_internal.policy(p_type)).grouped THEN
            RETURN QUERY
                SELECT m.id, m.type, 'N', left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
                    g.attempts::integer, m.created_at, m.source, m.run_at, NULL::text, NULL::uuid, NULL::timestamptz,
                    NULL::timestamptz, NULL::text
                FROM mq.grouped AS g
                CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = g.id OFFSET 0) AS m
                WHERE g.type = p_type
                ORDER BY g.type, g.group_key, g.id
                LIMIT v_size;
        ELSE
            RETURN QUERY
                SELECT m.id, m.type, 'N', left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
                    r.attempts::integer, m.created_at, m.source, r.run_at, NULL::text, NULL::uuid, NULL::timestamptz,
                    NULL::timestamptz, NULL::text
                FROM mq.ready AS r
                CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = r.id OFFSET 0) AS m
                WHERE r.type = p_type
                ORDER BY r.type, r.priority, r.run_at, r.id
                LIMIT v_size;
        END IF;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        RETURN QUERY
            SELECT m.id, m.type, 'N', left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
                d.attempts::integer, m.created_at, m.source, d.run_at, NULL::text, NULL::uuid, NULL::timestamptz,
                NULL::timestamptz, d.error
            FROM mq.delayed AS d
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = d.id OFFSET 0) AS m
            WHERE d.type = p_type
            ORDER BY d.type, d.run_at, d.id
            LIMIT v_size - v_rows;
    ELSIF v_state = 'A' THEN
        RETURN QUERY
            SELECT m.id, m.type, 'A', left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
                u.attempt::integer, m.created_at, m.source, NULL::timestamptz, b.reader, b.batch_key, b.lease_until,
                b.claimed_at, NULL::text
            FROM mq.batch AS b
            CROSS JOIN LATERAL unnest(b.ids, b.attempts) AS u (id, attempt)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
            WHERE b.type = p_type
            ORDER BY b.type, b.lease_until
            LIMIT v_size;
    ELSIF v_state = 'E' THEN
        RETURN QUERY
            SELECT m.id, m.type, 'E', left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
                e.attempts::integer, m.created_at, m.source, NULL::timestamptz, e.reader, NULL::uuid, NULL::timestamptz,
                e.died_at, e.error
            FROM mq.dead AS e
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = e.id OFFSET 0) AS m
            WHERE e.type = p_type
            ORDER BY e.type DESC, e.died_at DESC, e.id DESC
            LIMIT v_size;
    ELSE
        RETURN QUERY
            SELECT c.id, c.type, 'C', left(c.body, v_length), c.headers, c.priority::integer, c.group_key, c.dedup_key,
                c.attempts::integer, c.created_at, c.source, NULL::timestamptz, c.reader, NULL::uuid, NULL::timestamptz,
                c.completed_at, NULL::text
            FROM mq.archive AS c
            WHERE c.type = p_type
            ORDER BY c.type DESC, c.completed_at DESC, c.id DESC
            LIMIT v_size;
    END IF;
END
$$;
