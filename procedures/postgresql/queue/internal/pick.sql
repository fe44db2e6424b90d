-- pick: take up to p_size ready messages of a type out of mq.ready, in claim order.
-- Arguments: p_take (true: called by take_batch; see pick_grouped)
-- Returns: picked and attempts (the number of this attempt), parallel arrays; NULL when nothing is ready
-- Transaction: never waits for another claim
--
-- An open snapshot prevents the cleanup of dead rows. A claim that starts at the beginning of the index then scans every
-- message that was finished since (9 ms after 200,000). The marks divide the index into segments:
--
--     start ........ mark of priority 0 ........ mark of priority 5 ........ end of the type
--        segment 1   |       segment 2           |       segment 3
--
-- A mark starts a segment, which ends before the priority of the next mark. All messages between the beginning of a
-- priority and its mark are finished. A priority without a mark belongs to the segment before it and is scanned from its
-- beginning, so the first message that is found there becomes its mark.
--
-- A claim starts at the low-water marks of mq.mark, where earlier claims found their first messages. No
-- message is skipped for longer than a second. In a grouped queue, after a full scan that took long, the next one is later:
-- after ten times that time, at most 5 seconds.
-- 1. A procedure that puts a message back below a mark calls lower_mark. When a message becomes due below a mark, this
--    procedure lowers the mark.
-- 2. Two kinds of messages can appear below a mark without lowering it: their sender commits late, or a take rolls back. So
--    no segment starts later than one second ago, and the first claim of each second is a full scan: it ignores the marks.
-- docs/background/how-a-claim-works.md explains this with a drawing.
--
-- Statistics are often collected while the queue is empty. Then reading a whole type through a smaller index and sorting it
-- seems as cheap as the index in claim order. So sorting is off, and every query on mq.ready has the ORDER BY of that
-- index.
CREATE OR REPLACE FUNCTION mq_internal.pick(
    p_queue mq.queue, p_size bigint, p_take boolean, OUT picked bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    -- The longest time that a message may be skipped, and how far ahead scanned_at may be. If it is further ahead, the clock
    -- was set back.
    c_late CONSTANT interval := '1 second';
    c_ahead CONSTANT interval := CASE WHEN p_queue.grouped THEN '5 seconds' ELSE '0' END;
    -- A full scan that takes longer than this and finds nothing has read dead rows. Idle consumers should not repeat it
    -- often.
    c_long_scan CONSTANT interval := '5 milliseconds';
    -- Renew a mark when the first message is this many ids after it. Scanning 1,000 dead rows takes about 0.03 ms, writing
    -- marks 0.06 ms.
    c_stride CONSTANT bigint := 1000;
    -- In a grouped queue a mark is written after this many tickets of blocked groups.
    c_passed CONSTANT integer := 250;
    -- As in renew_marks. Priorities after the eighth get no mark.
    c_marks CONSTANT integer := 8;
    v_now timestamptz := clock_timestamp();
    v_latest timestamptz := v_now - c_late;
    v_mark record;
    v_start mq.mark;
    v_grouped record;
    v_n bigint;
    v_scanned_at timestamptz;
    v_full_scan boolean;
    v_ready record;
    v_promoted_to timestamptz := v_now;
    v_lowered_to timestamptz := 'infinity';
    v_segment integer := 1;
    v_end integer;
    v_rows tid[];
    v_heads tid[];
    v_renew boolean;
BEGIN
    -- One statement for all that a claim asks first. Rows before the first mark are rare, and this check costs less than a
    -- locking scan. EXISTS would drop its ORDER BY and might then read the whole type through another index.
    SELECT k.*,
        EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type AND run_at > k.promoted_to AND run_at <= v_now) AS due,
        (
            SELECT id FROM mq.ready WHERE type = p_queue.type AND priority < k.priority
            ORDER BY type, priority, run_at, id LIMIT 1
        ) IS NOT NULL AS before INTO v_mark
    FROM (SELECT * FROM mq.mark WHERE type = p_queue.type ORDER BY type, n DESC, priority, run_at LIMIT 1) AS k;
    v_n := v_mark.n;
    v_full_scan := (v_now BETWEEN v_mark.scanned_at - c_ahead AND v_mark.scanned_at + c_late) IS NOT TRUE;
    v_scanned_at := CASE WHEN v_full_scan THEN v_now ELSE v_mark.scanned_at END;
    v_renew := v_full_scan;
    IF v_full_scan OR v_mark.due THEN
        v_ready := mq_internal.make_ready(p_queue, p_size, p_take, v_n, CASE WHEN NOT v_full_scan THEN v_mark.promoted_to END, v_now);
        v_promoted_to := v_ready.promoted_to;
        v_lowered_to := v_ready.lowered_to;
        v_latest := least(v_latest, v_lowered_to);
        v_renew := v_full_scan OR v_ready.mark_lowered;
    END IF;

    IF p_queue.grouped OR p_queue.fair THEN
        IF p_queue.fair AND NOT p_queue.grouped THEN
            SELECT f.picked, f.attempts INTO picked, attempts FROM mq_internal.pick_fair(p_queue, p_size) AS f;
        ELSE
            IF v_full_scan AND NOT p_take THEN
                PERFORM mq_internal.clean_buckets(p_queue);
            END IF;
            IF NOT (v_full_scan OR v_mark.before OR v_mark.due) THEN
                v_start := ROW(NULL, NULL, NULL, least(v_mark.run_at, v_latest),
                    CASE WHEN v_mark.run_at < v_latest THEN v_mark.id ELSE 0 END, NULL, v_mark.priority, p_queue.type);
            END IF;
            v_grouped := mq_internal.pick_grouped(p_queue, p_size, p_take, v_start);
            picked := v_grouped.picked;
            attempts := v_grouped.attempts;
            v_start := v_grouped.start;
        END IF;
        IF v_full_scan AND picked IS NOT NULL THEN
            -- Calls start at the first ticket of a group that was not blocked, if one has passed over many. Otherwise the
            -- row only records the time of the full scan. The second begins at its end: after 100,000 blocked groups it took
            -- 0.1 to 0.4 s.
            IF (
                SELECT (priority, run_at, id) < (v_start.priority, v_start.run_at, v_start.id)
                FROM mq.ready WHERE type = p_queue.type
                ORDER BY type, priority, run_at, id
                OFFSET c_passed LIMIT 1
            ) IS NOT TRUE THEN
                v_start := ROW(NULL, NULL, NULL, '-infinity', 0, NULL, -32768, p_queue.type);
            END IF;
            PERFORM mq_internal.renew_marks(p_queue.type, v_n, clock_timestamp() + least(9 * (clock_timestamp() - v_now), c_ahead),
                '-infinity', NULL, '-infinity', 'infinity', v_start);
        END IF;
        RETURN;
    END IF;

    -- A promoted message may be before the first mark, too.
    IF v_full_scan OR v_mark.before OR v_mark.due THEN
        v_mark.next_priority := CASE WHEN v_full_scan THEN 32768 ELSE v_mark.priority END;
        v_mark.priority := -32768;
        v_mark.run_at := '-infinity';
        v_mark.id := 0;
    END IF;
    LOOP
        -- A segment per round. This statement does all of it: an expression of its own costs more than one in here.
        SELECT v_rows || array_agg(r.ctid), picked || array_agg(r.id), pick.attempts || array_agg((r.attempts + 1)::smallint),
            v_heads || CASE WHEN min(r.priority) = max(r.priority) THEN (array_agg(r.ctid))[1:1] ELSE array_agg(r.ctid) END,
            v_renew OR coalesce(min(r.priority) = v_mark.priority AND abs((array_agg(r.id))[1] - v_mark.id) > c_stride
                OR max(r.priority) > v_mark.priority AND v_segment <= c_marks, false)
        INTO v_rows, picked, attempts, v_heads, v_renew
        FROM (
            SELECT q.ctid, q.* FROM mq.ready AS q
            WHERE q.type = p_queue.type AND q.priority < v_mark.next_priority
                AND (q.priority, q.run_at, q.id) >= (v_mark.priority, least(v_mark.run_at, v_latest),
                    CASE WHEN v_mark.run_at < v_latest THEN v_mark.id ELSE 0 END)
            ORDER BY q.type, q.priority, q.run_at, q.id
            LIMIT p_size - coalesce(cardinality(picked), 0)
            FOR UPDATE SKIP LOCKED
        ) AS r;
        EXIT WHEN v_mark.next_priority = 32768 OR cardinality(picked) >= p_size;
        v_segment := v_segment + 1;
        v_end := v_mark.next_priority;
        SELECT * INTO v_mark FROM mq.mark
        WHERE type = p_queue.type AND n = v_n AND priority >= v_end
        ORDER BY type, n DESC, priority, run_at
        LIMIT 1;
        IF NOT FOUND THEN
            -- Another claim has renewed the marks since: scan the rest from its start.
            SELECT v_end::smallint AS priority, '-infinity'::timestamptz AS run_at, 0::bigint AS id, 32768 AS next_priority
            INTO v_mark;
        END IF;
    END LOOP;

    IF picked IS NOT NULL THEN
        IF v_renew THEN
            PERFORM mq_internal.renew_marks(p_queue.type, v_n, v_scanned_at, v_promoted_to, v_heads, '-infinity', v_lowered_to);
        END IF;
        DELETE FROM mq.ready WHERE ctid = ANY (v_rows);
    ELSIF v_full_scan AND v_n IS NOT NULL AND clock_timestamp() > v_now + c_long_scan THEN
        -- Nothing is ready: move all marks up to now.
        PERFORM mq_internal.renew_marks(p_queue.type, v_n, v_scanned_at, v_promoted_to, NULL, v_now, 'infinity');
    END IF;
END
$$;
