-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_wraparound('crawl', 10, 'worker-1');
--
-- Two statements, because a UNION cannot be locked. The reader's place is inserted, not updated, as in mq.mark.

CREATE OR REPLACE FUNCTION mq.claim_wraparound(
    p_type text,
    p_size integer DEFAULT NULL,
    p_reader text DEFAULT NULL,
    p_lease_seconds integer DEFAULT NULL,
    p_after_id bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    type text,
    body text,
    headers text,
    priority integer,
    group_key text,
    dedup_key text,
    attempt integer,
    created_at timestamptz,
    source text,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    -- A variable: no index can be asked for what is before a volatile function.
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_size integer := coalesce(p_size, 1);
    v_reader text := coalesce(p_reader, mq.reader_name(NULL));
    v_place mq.ring;
    v_after bigint;
    v_ids bigint[];
    v_attempts smallint[];
    v_more record;
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    PERFORM mq.require_name('reader', p_reader, true);
    PERFORM mq.require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    v_queue := mq.policy(p_type);
    IF v_queue.ordered THEN
        PERFORM mq.raise_error('queue_is_ordered', 'claim_wraparound goes by id and would break the order of '
            || p_type || '; use claim_batch');
    END IF;
    IF v_queue.paused THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM mq.batch WHERE type = p_type AND lease_until <= v_now) THEN
        PERFORM mq.rescue(v_queue, 20);
    END IF;
    IF EXISTS (SELECT FROM mq.delayed WHERE type = p_type AND run_at <= v_now) THEN
        PERFORM mq.promote(v_queue, '-infinity', v_now, greatest(2 * v_size, 100));
    END IF;

    SELECT * INTO v_place FROM mq.ring WHERE type = p_type AND reader = v_reader ORDER BY type, reader, n DESC LIMIT 1;
    v_after := coalesce(p_after_id, v_place.after_id, 0);

    WITH gone AS (
        DELETE FROM mq.ready
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.ready
            WHERE type = p_type AND id > v_after
            ORDER BY type, id
            LIMIT v_size
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id, attempts
    )
    SELECT array_agg(g.id ORDER BY g.id), array_agg((g.attempts + 1)::smallint ORDER BY g.id)
    INTO v_ids, v_attempts
    FROM gone AS g;
    IF coalesce(cardinality(v_ids), 0) < v_size THEN
        WITH gone AS (
            DELETE FROM mq.ready
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.ready
                WHERE type = p_type AND id <= v_after
                ORDER BY type, id
                LIMIT v_size - coalesce(cardinality(v_ids), 0)
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id, attempts
        )
        SELECT array_agg(g.id ORDER BY g.id) AS ids, array_agg((g.attempts + 1)::smallint ORDER BY g.id) AS attempts
        INTO v_more
        FROM gone AS g;
        v_ids := v_ids || v_more.ids;
        v_attempts := v_attempts || v_more.attempts;
    END IF;
    IF v_ids IS NULL THEN
        RETURN;
    END IF;

    INSERT INTO mq.ring (n, after_id, type, reader)
    VALUES (coalesce(v_place.n, 0) + 1, v_ids[cardinality(v_ids)], p_type, v_reader);
    DELETE FROM mq.ring
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.ring
        WHERE type = p_type AND reader = v_reader AND n BETWEEN v_place.n - 20 AND v_place.n
        FOR UPDATE SKIP LOCKED
    ));
    RETURN QUERY SELECT * FROM mq.hold(v_queue, v_ids, v_attempts, v_reader, p_lease_seconds);
END
$$;
