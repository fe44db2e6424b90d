-- redrive_all: retry the dead letters of a queue, or those with one error; their attempts are reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_error (an error as list_errors returns it; only dead letters with it are
--              retried; NULL: any), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: messages that will be retried, those that died first; repeat until it is 0
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; skips dead letters that another call is changing
-- Example:     SELECT mq.redrive_all('email', 'connection timed out after # s');
CREATE OR REPLACE FUNCTION mq.redrive_all(
    p_type text,
    p_error text DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_ids bigint[];
    v_error text := rtrim(p_error, ' ');
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    p_size := coalesce(p_size, 1000);
    WITH gone AS (
        DELETE FROM mq.dead
        WHERE ctid = ANY (CASE WHEN p_error IS NULL THEN ARRAY(
            SELECT ctid FROM mq.dead WHERE type = p_type
            ORDER BY type, died_at, id
            LIMIT p_size
            FOR UPDATE SKIP LOCKED
        ) ELSE ARRAY(
            -- Locks only dead letters with this error: two errors can be redriven at the same time.
            SELECT ctid FROM mq.dead WHERE type = p_type AND error_group = v_error
            ORDER BY type, error_group, died_at, id
            LIMIT p_size
            FOR UPDATE SKIP LOCKED
        ) END)
        RETURNING id
    )
    SELECT array_agg(id ORDER BY id) INTO v_ids FROM gone;
    affected := coalesce(cardinality(v_ids), 0);
    IF affected > 0 THEN
        PERFORM mq_internal.put_back(mq_internal.policy(p_type), v_ids, array_fill(0::smallint, ARRAY[affected::integer]));
    END IF;
END
$$;
