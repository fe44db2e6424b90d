-- fill_ring: rescue expired claims, send due schedules and promote due messages of a ring, and measure how long the scan
--            for them took.
-- Arguments:   p_queue (the policy), p_size (of the claim), p_full_scan (also check expired claims and schedules),
--              p_promoted_to (no message due before this time is delayed), p_now, p_long (a longer scan is repeated)
-- Returns:     promoted_to (new value), scanned (the duration of the scan)

CREATE OR REPLACE FUNCTION mq_internal.fill_ring(
    p_queue mq.queue,
    p_size bigint,
    p_full_scan boolean,
    p_promoted_to timestamptz,
    p_now timestamptz,
    p_long interval,
    OUT promoted_to timestamptz,
    OUT scanned interval
)
LANGUAGE plpgsql
AS $$
DECLARE
    -- The maximum numbers of messages that a claim promotes and of expired claims that it rescues.
    v_promote integer := greatest(2 * p_size, 100);
    c_rescue CONSTANT integer := 20;
    -- Stop before now: another transaction may be about to commit a failed message that is already due.
    c_late CONSTANT interval := '1 second';
    v_begun timestamptz;
    v_expired boolean;
    v_due boolean;
BEGIN
    -- Measure twice: planning and cold pages are slow only the first time.
    FOR i IN 1..2 LOOP
        v_begun := clock_timestamp();
        v_expired := p_full_scan AND EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type AND lease_until <= p_now);
        v_due := EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at > p_promoted_to AND run_at <= p_now);
        scanned := clock_timestamp() - v_begun;
        EXIT WHEN scanned < p_long;
    END LOOP;
    IF v_expired THEN
        PERFORM mq_internal.rescue(p_queue, c_rescue);
    END IF;
    IF p_full_scan AND EXISTS (SELECT FROM mq.schedule WHERE type = p_queue.type) THEN
        PERFORM mq_internal.send_due(p_queue.type, v_promote);
    END IF;
    promoted_to := p_now - c_late;
    IF v_due AND (mq_internal.promote(p_queue, p_promoted_to, p_now, v_promote)).moved = v_promote THEN
        promoted_to := p_promoted_to;
    END IF;
END
$$;
