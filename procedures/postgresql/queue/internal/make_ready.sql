-- make_ready: before a claim, rescue expired claims, send due schedules, promote due messages and convert rows.
-- Arguments: p_n (the number of the marks that the claim read), p_promoted_to (every message due until then is
--     promoted; NULL: the claim is a full scan)
-- Returns: promoted_to (every message due until then is promoted), lowered_to (the earliest run_at among promoted
--     messages; infinity: none), mark_lowered (a mark is later than that)
CREATE OR REPLACE FUNCTION mq_internal.make_ready(
    p_queue mq.queue, p_size bigint, p_take boolean, p_n bigint, p_promoted_to timestamptz, p_now timestamptz,
    OUT promoted_to timestamptz, OUT lowered_to timestamptz, OUT mark_lowered boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
    v_rescue integer := CASE WHEN p_take THEN 1 ELSE 20 END;
    v_promote integer := CASE WHEN p_take THEN p_size ELSE greatest(2 * p_size, 100) END;
    v_due record;
BEGIN
    IF p_promoted_to IS NULL THEN
        IF EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type AND lease_until <= p_now) THEN
            PERFORM mq_internal.rescue(p_queue, v_rescue);
        END IF;
        PERFORM mq_internal.send_due(p_queue.type, v_promote);
        -- A row of another form, in the index by lane and id: see convert_rows.
        IF p_queue.mixed OR p_queue.ring AND EXISTS (
            SELECT FROM mq.ready WHERE type = p_queue.type AND by_id IS NOT NULL AND lane >= '' ORDER BY type, lane, id OFFSET 0
        ) OR p_queue.fair AND EXISTS (
            SELECT FROM mq.ready WHERE type = p_queue.type AND by_id IS NOT NULL AND lane IS NULL ORDER BY type, lane, id OFFSET 0
        ) THEN
            PERFORM mq_internal.convert_rows(p_queue, CASE WHEN p_take THEN p_size END);
        END IF;
    END IF;
    promoted_to := coalesce(p_promoted_to, '-infinity');
    lowered_to := 'infinity';
    mark_lowered := false;
    IF EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at > promoted_to AND run_at <= p_now) THEN
        v_due := mq_internal.promote(p_queue, promoted_to, p_now, v_promote);
        promoted_to := CASE WHEN v_due.moved < v_promote THEN p_now ELSE '-infinity' END;
        lowered_to := coalesce(v_due.first_run_at, 'infinity');
        mark_lowered := EXISTS (
            SELECT FROM mq.mark WHERE type = p_queue.type AND n = p_n AND run_at > lowered_to
        );
    ELSE
        promoted_to := p_now;
    END IF;
END
$$;
