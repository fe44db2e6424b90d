-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   p_type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, and never more than 10,000 index entries a number
-- Example:     SELECT * FROM mq.queue_stats();

CREATE OR REPLACE FUNCTION mq.queue_stats(
    p_type text DEFAULT NULL
) RETURNS TABLE (
    type text,
    ready bigint,
    delayed bigint,
    active bigint,
    expired bigint,
    dead bigint,
    oldest_ready_seconds double precision,
    capped smallint,
    paused smallint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    c_cap CONSTANT integer := 10000;
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_due bigint;
    v_oldest timestamptz;
BEGIN
    PERFORM mq.require_name('type', p_type, true);
    type := p_type;
    LOOP
        IF p_type IS NULL THEN
            -- The next type by name, from the front of each index.
            SELECT min(t.next) INTO type
            FROM (
                SELECT (SELECT q.type FROM mq.queue AS q WHERE type IS NULL OR q.type > type ORDER BY q.type LIMIT 1)
                UNION ALL
                SELECT (SELECT r.type FROM mq.ready AS r WHERE r.type > coalesce(type, '') ORDER BY r.type LIMIT 1)
                UNION ALL
                SELECT (SELECT d.type FROM mq.delayed AS d WHERE d.type > coalesce(type, '') ORDER BY d.type LIMIT 1)
                UNION ALL
                SELECT (SELECT b.type FROM mq.batch AS b WHERE b.type > coalesce(type, '') ORDER BY b.type LIMIT 1)
                UNION ALL
                SELECT (SELECT g.type FROM mq.grouped AS g WHERE g.type > coalesce(type, '') ORDER BY g.type LIMIT 1)
                UNION ALL
                SELECT (SELECT e.type FROM mq.dead AS e WHERE e.type > coalesce(type, '') ORDER BY e.type LIMIT 1)
            ) AS t (next);
            EXIT WHEN type IS NULL;
        END IF;
        v_queue := mq.policy(type);
        IF v_queue.ordered THEN
            SELECT count(*), min(m.run_at) INTO ready, v_oldest
            FROM (SELECT g.id FROM mq.grouped AS g WHERE g.type = type LIMIT c_cap + 1) AS g
            JOIN mq.message AS m ON m.id = g.id;
        ELSE
            SELECT count(*) INTO ready FROM (SELECT FROM mq.ready AS r WHERE r.type = type LIMIT c_cap + 1) AS r;
            SELECT r.run_at INTO v_oldest FROM mq.ready AS r WHERE r.type = type
            ORDER BY r.type, r.priority, r.run_at, r.id LIMIT 1;
        END IF;
        SELECT count(*), coalesce(v_oldest, min(d.run_at)) INTO v_due, v_oldest
        FROM (
            SELECT d.run_at FROM mq.delayed AS d WHERE d.type = type AND d.run_at <= v_now
            ORDER BY d.type, d.run_at LIMIT c_cap + 1
        ) AS d;
        SELECT count(*) INTO delayed
        FROM (SELECT FROM mq.delayed AS d WHERE d.type = type AND d.run_at > v_now LIMIT c_cap + 1) AS d;
        SELECT coalesce(sum(cardinality(b.ids)) FILTER (WHERE b.lease_until > v_now), 0),
            coalesce(sum(cardinality(b.ids)) FILTER (WHERE b.lease_until <= v_now), 0)
        INTO active, expired
        FROM (SELECT b.ids, b.lease_until FROM mq.batch AS b WHERE b.type = type LIMIT c_cap + 1) AS b;
        SELECT count(*) INTO dead FROM (SELECT FROM mq.dead AS e WHERE e.type = type LIMIT c_cap + 1) AS e;
        ready := ready + v_due;
        capped := (greatest(ready, delayed, active, expired, dead) > c_cap)::integer;
        ready := least(ready, c_cap);
        delayed := least(delayed, c_cap);
        dead := least(dead, c_cap);
        active := least(active, c_cap);
        expired := least(expired, c_cap);
        -- greatest() passes over NULL: nothing ready has no age.
        oldest_ready_seconds := CASE WHEN v_oldest IS NOT NULL THEN greatest(extract(epoch FROM v_now - v_oldest), 0) END;
        paused := v_queue.paused::integer;
        RETURN NEXT;
        EXIT WHEN p_type IS NOT NULL;
    END LOOP;
END
$$;
