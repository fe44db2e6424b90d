-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued
--       and due messages promoted on the way.
-- Arguments:   p_queue (the policy), p_size, p_take (the caller's transaction may be long: see pick_ordered)
-- Returns:     picked and attempts (the number of this attempt), side by side; NULL when nothing is ready
-- Errors:      50001 wrong_isolation (ordered queues)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.pick(mq.policy('email'), 10, false);
--
-- Low-water marks. Under an open snapshot nothing that is deleted can be cleaned up, and a claim that starts at the front
-- of the index scans every message done since (9 ms after 200,000). So claims start where earlier claims began to find
-- something: mq.mark holds one such place per priority. Each mark starts a segment that ends before the next mark, and
-- before the first mark lies one more segment. So priorities without a mark are scanned as well, from their start.
--
-- No message is passed over for longer than a second. What is put back or becomes due below a mark lowers it. Two
-- messages can still appear below a mark unseen: one whose sender commits late, and one whose take rolls back. For the
-- first, no segment starts later than a second ago. For both, the first claim of each second is a full scan: it ignores
-- the marks and reads the type from its very start. docs/how-a-claim-works.md tells it with a drawing.
--
-- Statistics are mostly taken when the queue is empty, and then reading a whole type through the smaller index and
-- sorting it looks as good as the claim order's own index: hence no sort, and the order in every query on ready.

CREATE OR REPLACE FUNCTION mq.pick(
    p_queue mq.queue,
    p_size integer,
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
    -- How long a message may be passed over.
    c_late CONSTANT interval := '1 second';
    -- A mark is renewed when the front has moved by so many ids. Scanning 1,000 dead rows takes about as long as renewing it.
    c_stride CONSTANT bigint := 1000;
    -- Every mark costs a statement in each claim that comes short. Further priorities are claimed without marks.
    c_marks CONSTANT integer := 8;
    -- A full scan that took so long and found nothing has read dead rows: idle consumers need not do it all the time.
    c_long_scan CONSTANT interval := '5 milliseconds';
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    v_rescue integer := CASE WHEN p_take THEN 1 ELSE 20 END;
    v_promote integer := CASE WHEN p_take THEN p_size ELSE greatest(2 * p_size, 100) END;
    v_now timestamptz := clock_timestamp();
    v_next_mark mq.mark;
    v_n bigint;
    v_looked_at timestamptz;
    v_promoted_to timestamptz := '-infinity';
    v_full_scan boolean;
    v_marks_changed boolean := false;
    v_due record;
    v_lowered_to timestamptz := 'infinity';
    v_segment integer := 0;
    v_some boolean := true;
    v_mark mq.mark;
    v_from_run_at timestamptz := '-infinity';
    v_from_id bigint := 0;
    v_end integer;
    v_found record;
    v_rows tid[];
BEGIN
    SELECT * INTO v_next_mark FROM mq.mark WHERE type = p_queue.type ORDER BY type, n DESC, priority, run_at LIMIT 1;
    v_n := v_next_mark.n;
    v_looked_at := v_next_mark.looked_at;
    v_full_scan := v_n IS NULL OR v_now NOT BETWEEN v_looked_at AND v_looked_at + c_late;
    IF v_full_scan THEN
        v_looked_at := v_now;
        IF EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type AND lease_until <= v_now) THEN
            PERFORM mq.rescue(p_queue, v_rescue);
        END IF;
    ELSE
        v_promoted_to := v_next_mark.promoted_to;
    END IF;

    IF EXISTS (
        SELECT FROM mq.delayed
        WHERE type = p_queue.type AND run_at > v_promoted_to AND run_at <= v_now
    ) THEN
        SELECT * INTO v_due FROM mq.promote(p_queue, v_promoted_to, v_now, v_promote);
        v_promoted_to := CASE WHEN v_due.moved < v_promote THEN v_now ELSE '-infinity' END;
        v_lowered_to := coalesce(v_due.first_run_at, 'infinity');
        v_marks_changed := EXISTS (
            SELECT FROM mq.mark WHERE type = p_queue.type AND n = v_n AND run_at > v_lowered_to
        );
    ELSE
        v_promoted_to := v_now;
    END IF;

    IF p_queue.ordered THEN
        SELECT o.picked, o.attempts INTO picked, attempts FROM mq.pick_ordered(p_queue.type, p_size, p_take) AS o;
        IF v_full_scan AND picked IS NOT NULL THEN
            -- No claim of tickets begins at a mark. They only tell when the last full scan was.
            PERFORM mq.renew_marks(p_queue.type, v_n, v_looked_at, '-infinity', NULL, c_marks, '-infinity', 'infinity');
        END IF;
        RETURN;
    END IF;

    -- The first segment begins at the very start. That of a full scan is the only one; otherwise it is mostly empty, and to
    -- ask is cheaper than to lock.
    v_mark.priority := -32768;
    IF v_full_scan THEN
        v_next_mark := NULL;
    ELSE
        v_some := EXISTS (
            SELECT FROM mq.ready
            WHERE type = p_queue.type AND priority < v_next_mark.priority
            ORDER BY type, priority, run_at, id
        );
    END IF;
    LOOP
        v_segment := v_segment + 1;
        v_end := coalesce(v_next_mark.priority, 32768);
        IF v_some THEN
            SELECT array_agg(r.ctid) AS rows, array_agg(r.id) AS ids, array_agg((r.attempts + 1)::smallint) AS attempts,
                min(r.priority) AS first_priority, max(r.priority) AS last_priority
            INTO v_found
            FROM (
                SELECT ctid, *
                FROM mq.ready
                WHERE type = p_queue.type AND (priority, run_at, id) >= (v_mark.priority, v_from_run_at, v_from_id)
                    AND priority < v_end
                ORDER BY type, priority, run_at, id
                LIMIT p_size - coalesce(cardinality(picked), 0)
                FOR UPDATE SKIP LOCKED
            ) AS r;
            IF v_found.ids IS NOT NULL THEN
                v_rows := v_rows || v_found.rows;
                picked := picked || v_found.ids;
                attempts := attempts || v_found.attempts;
                -- A full scan is noted, the front has moved, or there is a priority that may have a mark and has none.
                v_marks_changed := v_marks_changed OR v_full_scan
                    OR v_found.first_priority = v_mark.priority AND abs(v_found.ids[1] - v_mark.id) > c_stride
                    OR v_found.last_priority > v_mark.priority AND v_segment <= c_marks;
            END IF;
        END IF;
        EXIT WHEN v_end = 32768 OR cardinality(picked) >= p_size;
        -- The next segment begins at the mark, or before it, where a message may have appeared since.
        v_mark := v_next_mark;
        v_from_run_at := least(v_mark.run_at, v_lowered_to, v_now - c_late);
        v_from_id := CASE WHEN v_from_run_at = v_mark.run_at THEN v_mark.id ELSE 0 END;
        SELECT * INTO v_next_mark
        FROM mq.mark
        WHERE type = p_queue.type AND n = v_n AND priority > v_mark.priority
        ORDER BY type, n DESC, priority, run_at
        LIMIT 1;
        v_some := true;
    END LOOP;
    IF v_marks_changed THEN
        PERFORM mq.renew_marks(p_queue.type, v_n, v_looked_at, v_promoted_to, v_rows, c_marks, '-infinity', v_lowered_to);
    ELSIF v_full_scan AND picked IS NULL AND v_n IS NOT NULL AND clock_timestamp() > v_now + c_long_scan THEN
        -- Nothing is ready: all marks move up to now.
        PERFORM mq.renew_marks(p_queue.type, v_n, v_looked_at, v_promoted_to, v_rows, c_marks, v_now, v_lowered_to);
    END IF;
    IF picked IS NOT NULL THEN
        DELETE FROM mq.ready WHERE ctid = ANY (v_rows);
    END IF;
END
$$;
