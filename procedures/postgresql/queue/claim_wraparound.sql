-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation (queues with limits), 50002 invalid_argument, 50003 wrong_kind (the queue is not a
--              ring)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_wraparound('crawl', 10, 'worker-1');
--
-- A claim that finds too few messages continues at the lowest id. Under an open snapshot it scans all dead rows before the
-- first ready message. So a ring has a low-water mark, as other queues have (see pick): a row of mq.mark whose run_at is
-- -infinity; no message up to its id is ready. A procedure that makes a message ready below it makes the next claim a full
-- scan. A message that a sender commits late below the mark waits for the full scan, which the first claim of each second
-- is. The claim takes in two statements, because a UNION cannot be locked.
CREATE OR REPLACE FUNCTION mq.claim_wraparound(
    p_type text,
    p_size bigint DEFAULT NULL,
    p_consumer text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL,
    p_after_id bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, body text, headers text, priority integer, group_key text, dedup_key text, attempt integer,
    created_at timestamptz, source text, batch_key uuid, lease_until timestamptz, max_attempts integer,
    run_at timestamptz, extra text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    -- As in pick.
    c_late CONSTANT interval := '1 second';
    c_long_scan CONSTANT interval := '5 milliseconds';
    c_stride CONSTANT bigint := 1000;
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_size integer := coalesce(p_size, 1);
    v_consumer text := coalesce(p_consumer, mq_internal.consumer_name(NULL));
    v_mark record;
    v_full_scan boolean;
    v_promoted_to timestamptz;
    v_from bigint;
    v_lowest bigint;
    v_position mq.ring;
    v_after bigint;
    v_round bigint;
    v_taken record;
    v_left integer;
    v_more record;
    v_batch mq.batch;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_name('consumer', p_consumer, true);
    PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 1, 86400);
    v_queue := mq_internal.policy(p_type);
    IF NOT v_queue.ring THEN
        PERFORM mq_internal.raise_error('wrong_kind', format('type: %s is not a ring; use set_option(%L, ''ring'', ''1''), or claim_batch',
            p_type, p_type));
    END IF;
    IF v_queue.paused THEN
        RETURN;
    END IF;
    SELECT * INTO v_position
    FROM mq.ring
    WHERE type = p_type AND consumer = v_consumer
    ORDER BY type, consumer, n DESC, lane DESC, after_id DESC
    LIMIT 1;
    v_after := coalesce(p_after_id, v_position.after_id, 0);
    v_round := coalesce(v_position.n, 0) + (p_after_id IS NOT NULL)::integer;
    IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
        v_size := mq_internal.allowance(v_queue, v_size);
        IF v_size = 0 THEN
            RETURN;
        END IF;
    END IF;

    SELECT k.*, EXISTS (SELECT FROM mq.delayed WHERE type = p_type AND run_at > k.promoted_to AND run_at <= v_now) AS due
    INTO v_mark
    FROM (SELECT * FROM mq.mark WHERE type = p_type ORDER BY type, n DESC, priority, run_at LIMIT 1) AS k;
    -- Any other mark is one of claim_batch.
    v_full_scan := (v_mark.run_at = '-infinity' AND v_now BETWEEN v_mark.scanned_at AND v_mark.scanned_at + c_late) IS NOT TRUE;
    IF v_full_scan OR v_mark.due THEN
        v_promoted_to := (mq_internal.make_ready(v_queue, v_size, false, v_mark.n,
            CASE WHEN NOT v_full_scan THEN v_mark.promoted_to END, v_now)).promoted_to;
    END IF;
    v_from := CASE WHEN v_full_scan OR v_mark.due THEN 0 ELSE v_mark.id END;

    v_taken := mq_internal.take_ring(p_type, greatest(v_after, v_from), 9223372036854775807, v_size);
    v_left := v_size - coalesce(cardinality(v_taken.ids), 0);
    IF v_left > 0 THEN
        v_lowest := (
            SELECT id FROM mq.ready
            WHERE type = p_type AND by_id IS NOT NULL AND lane IS NULL AND id > v_from AND id <= v_after
            ORDER BY type, lane, id
            LIMIT 1
        );
        IF v_lowest IS NOT NULL THEN
            v_more := mq_internal.take_ring(p_type, v_lowest - 1, v_after, v_left);
            v_taken.ids := v_taken.ids || v_more.ids;
            v_taken.attempts := v_taken.attempts || v_more.attempts;
            v_round := v_round + (v_more.ids IS NOT NULL)::integer;
        END IF;
    END IF;

    IF v_full_scan AND (v_taken.ids IS NOT NULL OR clock_timestamp() > v_now + c_long_scan) OR v_mark.due
            OR v_left > 0 AND coalesce(v_lowest, v_after) - v_from > c_stride THEN
        PERFORM mq_internal.renew_marks(p_type, v_mark.n, CASE WHEN v_full_scan THEN v_now ELSE v_mark.scanned_at END,
            coalesce(v_promoted_to, v_mark.promoted_to), NULL, '-infinity', 'infinity',
            ROW(NULL, NULL, NULL, '-infinity', CASE
                WHEN v_lowest IS NOT NULL THEN v_lowest - 1
                WHEN v_taken.ids IS NULL THEN (SELECT last_value FROM mq.message_id_seq)
                WHEN v_left = 0 THEN v_from
                ELSE greatest(v_after, v_from)
            END, NULL, -32768, p_type)::mq.mark);
    END IF;
    IF v_taken.ids IS NOT NULL THEN
        IF v_queue.rate > 0 THEN
            PERFORM mq_internal.spend(v_queue, cardinality(v_taken.ids));
        END IF;
        PERFORM mq_internal.save_position(
            ROW(v_round, v_taken.ids[cardinality(v_taken.ids)], p_type, v_consumer, '')::mq.ring, v_position);
        v_batch := mq_internal.hold(v_queue, v_taken.ids, v_taken.attempts, v_consumer, p_lease_seconds);
        RETURN QUERY
            -- The rows keep the order of unnest: see claim_batch.
            SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key, u.attempt::integer,
                m.created_at, m.source, v_batch.batch_key, v_batch.lease_until, coalesce(m.max_attempts, v_queue.max_attempts), m.run_at,
                NULL::text
            FROM unnest(v_batch.ids, v_batch.attempts) AS u (id, attempt)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m;
    END IF;
END
$$;
