-- peek: list messages without claiming them.
-- Arguments:   p_type (1 to 200 characters), p_state (N: in claim order, ready before delayed; A; E and C: the newest
--              first; NULL: N), p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to 16,777,216;
--              NULL: all)
-- Returns:     up to p_size messages with their state, consumer, times and error
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
    attempts integer, created_at timestamptz, source text, run_at timestamptz, consumer text, batch_key uuid,
    lease_until timestamptz, changed_at timestamptz, error text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_state text := coalesce(p_state, 'N');
    v_size integer := coalesce(p_size, 20);
    -- The longest body.
    v_length integer := coalesce(p_body_length, 16777216);
    v_grouped boolean := (mq_internal.policy(p_type)).grouped;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF v_state NOT IN ('N', 'A', 'E', 'C') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'state: must be N, A, E or C');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_range('body_length', p_body_length, 0, 16777216);
    IF v_state = 'C' THEN
        RETURN QUERY
            SELECT c.id, c.type, 'C', left(c.body, v_length), c.headers, c.priority::integer, c.group_key, c.dedup_key,
                c.attempts::integer, c.created_at, c.source, NULL::timestamptz, c.consumer, NULL::uuid, NULL::timestamptz,
                c.completed_at, NULL::text
            FROM mq.archive AS c
            WHERE c.type = p_type
            ORDER BY c.type DESC, c.completed_at DESC, c.id DESC
            LIMIT v_size;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT m.id, m.type, v_state, left(m.body, v_length), m.headers, m.priority::integer, m.group_key, m.dedup_key,
            x.attempts::integer, m.created_at, m.source, CASE WHEN v_state = 'N' THEN coalesce(x.run_at, m.run_at) END, x.consumer,
            x.batch_key, x.lease_until, x.changed_at,
            coalesce(x.error, CASE WHEN m.cancelled_at IS NOT NULL THEN 'cancelled' END)
        FROM (
            -- Only the parts of the state are read, one after the other, each in the order of its index.
            (
                SELECT g.id, g.attempts, NULL::timestamptz AS run_at, NULL::text AS consumer, NULL::uuid AS batch_key,
                    NULL::timestamptz AS lease_until, NULL::timestamptz AS changed_at, NULL::text AS error
                FROM mq.grouped AS g
                WHERE v_state = 'N' AND v_grouped AND g.type = p_type
                ORDER BY g.type, g.group_key, g.id LIMIT v_size
            )
            UNION ALL
            (
                SELECT r.id, r.attempts, r.run_at, NULL, NULL, NULL, NULL, NULL
                FROM mq.ready AS r
                WHERE v_state = 'N' AND NOT v_grouped AND r.type = p_type
                ORDER BY r.type, r.priority, r.run_at, r.id LIMIT v_size
            )
            UNION ALL
            (
                SELECT d.id, d.attempts, d.run_at, NULL, NULL, NULL, NULL, d.error
                FROM mq.delayed AS d
                WHERE v_state = 'N' AND d.type = p_type
                ORDER BY d.type, d.run_at, d.id LIMIT v_size
            )
            UNION ALL
            (
                SELECT u.id, u.attempt, NULL, b.consumer, b.batch_key, b.lease_until, b.claimed_at, NULL
                FROM mq.batch AS b
                CROSS JOIN LATERAL unnest(b.ids, b.attempts) AS u (id, attempt)
                WHERE v_state = 'A' AND b.type = p_type
                ORDER BY b.type, b.lease_until LIMIT v_size
            )
            UNION ALL
            (
                SELECT e.id, e.attempts, NULL, e.consumer, NULL, NULL, e.died_at, e.error
                FROM mq.dead AS e
                WHERE v_state = 'E' AND e.type = p_type
                ORDER BY e.type DESC, e.died_at DESC, e.id DESC LIMIT v_size
            )
        ) AS x
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = x.id OFFSET 0) AS m
        LIMIT v_size;
END
$$;
