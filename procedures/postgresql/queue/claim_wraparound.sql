-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation (queues with limits), 50002 invalid_argument, 50003 queue_is_ordered (or has limits
--              per group)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_wraparound('crawl', 10, 'worker-1');
--
-- A claim that finds too few messages continues at the lowest id. Under an open snapshot it scans all dead rows before the
-- first ready message. If that took long, the next claims start there, at a low-water mark, until low_until. The mark is
-- stored as the position of the reader with the empty name. A procedure that makes a message ready below the mark calls
-- lower_ring. A message that a sender commits late below the mark waits until low_until. The claim takes in two statements,
-- because a UNION cannot be locked.

CREATE OR REPLACE FUNCTION mq.claim_wraparound(
    p_type text,
    p_size bigint DEFAULT NULL,
    p_reader text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL,
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
    -- A longer scan leaves a low-water mark. 0.3 ms is the time to read about 3,000 dead rows.
    c_long CONSTANT interval := '0.3 milliseconds';
    -- A mark holds for ten times as long as its scans took, at most this long: full scans then take a tenth of the time. A
    -- mark that holds much longer was written before the clock was set back.
    c_longest CONSTANT interval := '5 seconds';
    c_set_back CONSTANT interval := '1 minute';
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_size integer := coalesce(p_size, 1);
    v_reader text := coalesce(p_reader, mq_internal.reader_name(NULL));
    v_low mq.ring;
    v_full_scan boolean;
    v_from bigint;
    v_filled record;
    v_scanned interval;
    v_position mq.ring;
    v_after bigint;
    v_round bigint;
    v_taken record;
    v_left integer;
    v_lowest record;
    v_low_after bigint;
    v_more record;
    v_batch mq.batch;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_name('reader', p_reader, true);
    PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    v_queue := mq_internal.policy(p_type);
    IF v_queue.grouped THEN
        PERFORM mq_internal.raise_error('queue_is_ordered', 'type: ' || p_type || ' is ordered or has limits per group; use claim_batch');
    END IF;
    IF v_queue.paused THEN
        RETURN;
    END IF;
    SELECT * INTO v_position
    FROM mq.ring
    WHERE type = p_type AND reader = v_reader
    ORDER BY type, reader, n DESC, after_id DESC
    LIMIT 1;
    v_after := coalesce(p_after_id, v_position.after_id, 0);
    v_round := coalesce(v_position.n, 0) + (p_after_id IS NOT NULL)::integer;
    IF NOT EXISTS (SELECT FROM mq.ring_type WHERE type = p_type AND complete) THEN
        PERFORM mq_internal.move_to_ring(p_type, v_size, v_after);
    END IF;
    IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
        v_size := mq_internal.allowance(v_queue, v_size);
        IF v_size = 0 THEN
            RETURN;
        END IF;
    END IF;

    SELECT * INTO v_low FROM mq.ring WHERE type = p_type AND reader = '' ORDER BY type, reader, n DESC, after_id DESC LIMIT 1;
    v_full_scan := v_low.low_until IS NULL OR v_now NOT BETWEEN v_low.low_until - c_set_back AND v_low.low_until;
    v_from := CASE WHEN v_full_scan THEN -9223372036854775808 ELSE v_low.after_id END;
    v_filled := mq_internal.fill_ring(v_queue, v_size, v_full_scan, CASE WHEN v_full_scan THEN '-infinity' ELSE v_low.promoted_to END,
        v_now, c_long);
    v_scanned := v_filled.scanned;

    v_taken := mq_internal.take_ring(p_type, greatest(v_after, v_from), 9223372036854775807, v_size);
    v_low_after := v_from;
    v_left := v_size - coalesce(cardinality(v_taken.ids), 0);
    IF v_left > 0 THEN
        v_lowest := mq_internal.scan_ring(p_type, v_from, v_after, v_taken.ids IS NULL, c_long);
        v_scanned := v_scanned + v_lowest.scanned;
        v_low_after := CASE
            WHEN v_lowest.lowest_id IS NOT NULL THEN v_lowest.lowest_id - 1
            WHEN v_taken.ids IS NOT NULL THEN greatest(v_after, v_from)
        END;
        IF v_lowest.lowest_id IS NOT NULL THEN
            v_more := mq_internal.take_ring(p_type, v_lowest.lowest_id - 1, v_after, v_left);
            v_taken.ids := v_taken.ids || v_more.ids;
            v_taken.attempts := v_taken.attempts || v_more.attempts;
            v_round := v_round + (v_more.ids IS NOT NULL)::integer;
        END IF;
    END IF;

    IF v_scanned > c_long THEN
        PERFORM mq_internal.renew_ring_mark(p_type, v_low.n, v_low_after,
            CASE WHEN v_full_scan THEN clock_timestamp() + least(10 * v_scanned, c_longest) ELSE v_low.low_until END,
            v_filled.promoted_to);
    END IF;
    IF v_taken.ids IS NOT NULL THEN
        IF v_queue.rate > 0 THEN
            PERFORM mq_internal.spend(v_queue, cardinality(v_taken.ids));
        END IF;
        PERFORM mq_internal.save_position(p_type, v_reader, v_size, v_round, v_taken.ids[cardinality(v_taken.ids)], v_position.n,
            v_position.after_id);
        v_batch := mq_internal.hold(v_queue, v_taken.ids, v_taken.attempts, v_reader, p_lease_seconds);
        RETURN QUERY
            -- The rows keep the order of unnest: see claim_batch.
            SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key, u.attempt::integer,
                m.created_at, m.source, v_batch.batch_key, v_batch.lease_until
            FROM unnest(v_batch.ids, v_batch.attempts) AS u (id, attempt)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m;
    END IF;
END
$$;
