-- claim_ring: take messages of a ring in order of id, round-robin, and save the consumer's new position.
-- Arguments: p_after_id (NULL: the position where this consumer stopped)
-- Returns: ids and attempts (the number of the new attempt), parallel arrays: the messages after p_after_id, then those from
--     the lowest id on, no message twice; NULL when there are none
-- Transaction: never waits for another claim
--
-- A claim that finds too few messages continues at the lowest id. Under an open snapshot it scans all dead rows before the
-- first ready message. So a ring has a low-water mark, as other queues have (see pick): a row of mq.mark whose run_at is
-- -infinity; no message up to its id is ready. A procedure that makes a message ready below it makes the next claim a full
-- scan. A message that a sender commits late below the mark waits for the full scan, which the first claim of each second
-- is. The claim takes in two statements, because a UNION cannot be locked.
CREATE OR REPLACE FUNCTION mq_internal.claim_ring(
    p_queue mq.queue, p_size bigint, p_consumer text, p_after_id bigint, OUT ids bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- As in pick.
    c_late CONSTANT interval := '1 second';
    c_long_scan CONSTANT interval := '5 milliseconds';
    c_stride CONSTANT bigint := 1000;
    v_now timestamptz := clock_timestamp();
    v_mark record;
    v_full_scan boolean;
    v_promoted_to timestamptz;
    v_from bigint;
    v_lowest bigint;
    v_position mq.ring;
    v_after bigint;
    v_round bigint;
    v_left integer;
    v_more record;
BEGIN
    SELECT * INTO v_position
    FROM mq.ring
    WHERE type = p_queue.type AND consumer = p_consumer
    ORDER BY type, consumer, n DESC, lane DESC, after_id DESC
    LIMIT 1;
    v_after := coalesce(p_after_id, v_position.after_id, 0);
    v_round := coalesce(v_position.n, 0) + (p_after_id IS NOT NULL)::integer;

    SELECT k.*, EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at > k.promoted_to AND run_at <= v_now) AS due
    INTO v_mark
    FROM (SELECT * FROM mq.mark WHERE type = p_queue.type ORDER BY type, n DESC, priority, run_at LIMIT 1) AS k;
    -- Any other mark is one of take_batch.
    v_full_scan := (v_mark.run_at = '-infinity' AND v_now BETWEEN v_mark.scanned_at AND v_mark.scanned_at + c_late) IS NOT TRUE;
    IF v_full_scan OR v_mark.due THEN
        v_promoted_to := (mq_internal.make_ready(p_queue, p_size, false, v_mark.n,
            CASE WHEN NOT v_full_scan THEN v_mark.promoted_to END, v_now)).promoted_to;
    END IF;
    v_from := CASE WHEN v_full_scan OR v_mark.due THEN 0 ELSE v_mark.id END;

    SELECT t.ids, t.attempts INTO ids, attempts
    FROM mq_internal.take_ring(p_queue.type, greatest(v_after, v_from), 9223372036854775807, p_size) AS t;
    v_left := p_size - coalesce(cardinality(ids), 0);
    IF v_left > 0 THEN
        v_lowest := (
            SELECT id FROM mq.ready
            WHERE type = p_queue.type AND by_id IS NOT NULL AND lane IS NULL AND id > v_from AND id <= v_after
            ORDER BY type, lane, id
            LIMIT 1
        );
        IF v_lowest IS NOT NULL THEN
            v_more := mq_internal.take_ring(p_queue.type, v_lowest - 1, v_after, v_left);
            ids := ids || v_more.ids;
            attempts := attempts || v_more.attempts;
            v_round := v_round + (v_more.ids IS NOT NULL)::integer;
        END IF;
    END IF;

    IF v_full_scan AND (ids IS NOT NULL OR clock_timestamp() > v_now + c_long_scan) OR v_mark.due
            OR v_left > 0 AND coalesce(v_lowest, v_after) - v_from > c_stride THEN
        PERFORM mq_internal.renew_marks(p_queue.type, v_mark.n, CASE WHEN v_full_scan THEN v_now ELSE v_mark.scanned_at END,
            coalesce(v_promoted_to, v_mark.promoted_to), NULL, '-infinity', 'infinity',
            ROW(NULL, NULL, NULL, '-infinity', CASE
                WHEN v_lowest IS NOT NULL THEN v_lowest - 1
                WHEN ids IS NULL THEN (SELECT last_value FROM mq.message_id_seq)
                WHEN v_left = 0 THEN v_from
                ELSE greatest(v_after, v_from)
            END, NULL, -32768, p_queue.type)::mq.mark);
    END IF;
    IF ids IS NOT NULL THEN
        PERFORM mq_internal.save_position(
            ROW(v_round, ids[cardinality(ids)], p_queue.type, p_consumer, '')::mq.ring, v_position);
    END IF;
END
$$;
