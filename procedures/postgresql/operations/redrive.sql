-- redrive: retry dead letters, with their attempts reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_id (NULL: all, those that died first, at most 10,000 per call), p_error
--              (an error as list_errors returns it; only dead letters with it are retried; NULL: any)
-- Returns:     count: messages that will be retried; repeat until it is 0
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.redrive('email');
CREATE OR REPLACE FUNCTION mq.redrive(
    p_type text,
    p_id bigint DEFAULT NULL,
    p_error text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_ids bigint[];
    v_error text := rtrim(p_error, ' ');
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_id IS NULL AND p_error IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM mq.dead
            WHERE ctid = ANY (ARRAY(
                -- Locks only dead letters with this error: two errors can be redriven at the same time.
                SELECT ctid FROM mq.dead
                WHERE type = p_type AND error_group = v_error
                ORDER BY type, error_group, died_at, id
                LIMIT 10000
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id
        )
        SELECT array_agg(id ORDER BY id) INTO v_ids FROM gone;
    ELSIF p_id IS NULL THEN
        WITH gone AS (
            DELETE FROM mq.dead
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.dead
                WHERE type = p_type
                ORDER BY type, died_at, id
                LIMIT 10000
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id
        )
        SELECT array_agg(id ORDER BY id) INTO v_ids FROM gone;
    ELSE
        -- ORDER BY selects the primary key: see erase.
        DELETE FROM mq.dead
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.dead WHERE id = ANY (ARRAY[p_id]) AND type = p_type
            AND (v_error IS NULL OR error_group = v_error) ORDER BY id));
        v_ids := CASE WHEN FOUND THEN ARRAY[p_id] END;
    END IF;
    count := coalesce(cardinality(v_ids), 0);
    IF count > 0 THEN
        PERFORM mq_internal.put_back(mq_internal.policy(p_type), v_ids, array_fill(0::smallint, ARRAY[count::integer]));
    END IF;
END
$$;
