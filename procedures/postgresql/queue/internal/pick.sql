-- pick: take up to p_size ready messages of a type out of mq.ready, in claim order; before that, rescue expired claims,
--       promote due messages and send due schedules.
-- Arguments:   p_queue (the policy), p_size, p_take (true: the caller is a take; see pick_grouped)
-- Returns:     picked and attempts (the number of this attempt), parallel arrays; NULL when nothing is ready
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.pick(mq.policy('email'), 10, false);
--
-- A claim starts at the low-water marks of mq.mark, where earlier claims found their first messages (see lock_ready). No
-- message is skipped for longer than a second:
-- 1. A procedure that puts a message back below a mark calls lower_mark. When a message becomes due below a mark, this
--    procedure lowers the mark.
-- 2. Two kinds of messages can appear below a mark without lowering it: their sender commits late, or a take rolls back. So
--    no segment starts later than one second ago, and the first claim of each second is a full scan: it ignores the marks.
-- docs/how-a-claim-works.md explains this with a drawing.
--
-- Statistics are often collected while the queue is empty. Then reading a whole type through a smaller index and sorting it
-- seems as cheap as the index in claim order. So sorting is off, and every query on mq.ready has the ORDER BY of that
-- index.

CREATE OR REPLACE FUNCTION mq.pick(
    p_queue mq.queue,
    p_size bigint,
    p_take boolean,
    OUT picked bigint[],
    OUT attempts smallint[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    -- The longest time that a message may be skipped.
    c_late CONSTANT interval := '1 second';
    -- A full scan that takes longer than this and finds nothing has read dead rows. Idle consumers should not repeat it
    -- often.
    c_long_scan CONSTANT interval := '5 milliseconds';
    -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
    v_rescue integer := CASE WHEN p_take THEN 1 ELSE 20 END;
    v_promote integer := CASE WHEN p_take THEN p_size ELSE greatest(2 * p_size, 100) END;
    v_now timestamptz := clock_timestamp();
    v_front record;
    v_mark mq.mark;
    v_n bigint;
    v_scanned_at timestamptz;
    v_promoted_to timestamptz := '-infinity';
    v_full_scan boolean;
    v_marks_changed boolean := false;
    v_due record;
    v_lowered_to timestamptz := 'infinity';
    v_found record;
BEGIN
    -- One statement for all that a claim asks first: each statement costs about 10 µs. Rows before the first mark are rare, and
    -- this check costs less than a locking scan. EXISTS would drop its ORDER BY and might then read the whole type.
    SELECT m.mark,
        EXISTS (
            SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at > (m.mark).promoted_to AND run_at <= v_now
        ) AS due,
        (
            SELECT id FROM mq.ready WHERE type = p_queue.type AND priority < (m.mark).priority
            ORDER BY type, priority, run_at, id LIMIT 1
        ) IS NOT NULL AS before
    INTO v_front
    FROM (
        SELECT k AS mark FROM mq.mark AS k WHERE type = p_queue.type ORDER BY type, n DESC, priority, run_at LIMIT 1
    ) AS m;
    v_mark := v_front.mark;
    v_n := v_mark.n;
    v_scanned_at := v_mark.scanned_at;
    v_full_scan := v_n IS NULL OR v_now NOT BETWEEN v_scanned_at AND v_scanned_at + c_late;
    IF v_full_scan THEN
        v_scanned_at := v_now;
        IF EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type AND lease_until <= v_now) THEN
            PERFORM mq.rescue(p_queue, v_rescue);
        END IF;
        IF EXISTS (SELECT FROM mq.schedule WHERE type = p_queue.type) THEN
            PERFORM mq.send_due(p_queue.type, v_promote);
        END IF;
        v_front.due := EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at <= v_now);
    ELSE
        v_promoted_to := v_mark.promoted_to;
    END IF;

    IF v_front.due THEN
        SELECT * INTO v_due FROM mq.promote(p_queue, v_promoted_to, v_now, v_promote);
        v_promoted_to := CASE WHEN v_due.moved < v_promote THEN v_now ELSE '-infinity' END;
        v_lowered_to := coalesce(v_due.first_run_at, 'infinity');
        v_marks_changed := EXISTS (
            SELECT FROM mq.mark WHERE type = p_queue.type AND n = v_n AND run_at > v_lowered_to
        );
    ELSE
        v_promoted_to := v_now;
    END IF;

    IF p_queue.grouped THEN
        IF v_full_scan AND NOT p_take AND (p_queue.group_rate > 0 OR NOT p_queue.ordered) THEN
            PERFORM mq.tend_groups(p_queue);
        END IF;
        SELECT g.picked, g.attempts INTO picked, attempts FROM mq.pick_grouped(p_queue, p_size, p_take) AS g;
        IF v_full_scan AND picked IS NOT NULL THEN
            -- Claims of tickets start at no mark. The row only records the time of the last full scan.
            PERFORM mq.renew_marks(p_queue.type, v_n, v_scanned_at, '-infinity', NULL, '-infinity', 'infinity');
        END IF;
        RETURN;
    END IF;

    IF v_full_scan THEN
        v_mark := NULL;
    END IF;
    v_found := mq.lock_ready(p_queue.type, p_size, v_mark, v_front.before, least(v_lowered_to, v_now - c_late));
    IF v_found.ids IS NOT NULL THEN
        IF v_full_scan OR v_marks_changed OR v_found.front_moved THEN
            PERFORM mq.renew_marks(p_queue.type, v_n, v_scanned_at, v_promoted_to, v_found.heads, '-infinity', v_lowered_to);
        END IF;
        DELETE FROM mq.ready WHERE ctid = ANY (v_found.rows);
        picked := v_found.ids;
        attempts := v_found.attempts;
    ELSIF v_full_scan AND v_n IS NOT NULL AND clock_timestamp() > v_now + c_long_scan THEN
        -- Nothing is ready: move all marks up to now.
        PERFORM mq.renew_marks(p_queue.type, v_n, v_scanned_at, v_promoted_to, NULL, v_now, 'infinity');
    END IF;
END
$$;
