-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued
--       and due messages promoted on the way.
-- Arguments:   p_queue (the policy), p_size, p_take (the caller's transaction may be long: see pick_ordered)
-- Returns:     picked and attempts (the number of this attempt), side by side; NULL when nothing is ready
-- Errors:      50001 wrong_isolation (ordered queues)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.pick(mq.policy('email'), 10, false);
--
-- Low-water marks. Under an open snapshot nothing that is deleted can be cleaned up, and a claim that begins at the
-- front of the index walks every message done since (9 ms after 200,000). So a claim begins where the claims before it
-- began to find something: one place for each priority, kept in mq.mark. Rows may appear below a mark: a transaction
-- that commits late, a take that rolls back. So no claim begins later than one second ago, for senders that are about
-- to commit, and the first claim of every second looks from the very start. What is put back on purpose calls lower_mark.
--
-- Statistics are mostly taken when the queue is empty, and then reading a whole type through the smaller index and
-- sorting it looks as good as the claim order's own index: hence no sort, and the order in every query on ready. What
-- must be sorted all the same is a batch; its forbidden price must not call for compilation.

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
    -- A mark is renewed when the front has moved by so many ids: walking 5,000 dead rows takes about 0.25 ms.
    c_stride CONSTANT bigint := 5000;
    -- Priorities beyond the first eight are claimed without marks.
    c_marks CONSTANT integer := 8;
    v_now timestamptz := clock_timestamp();
    v_mark mq.mark;
    v_full boolean;
    v_write boolean := false;
    v_learn boolean := false;
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    v_promote integer := CASE WHEN p_take THEN p_size ELSE greatest(2 * p_size, 100) END;
    v_all_promoted boolean := true;
    v_due record;
    v_due_place record;
    v_found record;
    v_next integer;
    v_above integer := -32769;
    v_from_run_at timestamptz;
    v_from_id bigint;
    i integer := 1;
BEGIN
    SELECT * INTO v_mark FROM mq.mark WHERE type = p_queue.type ORDER BY type, n DESC LIMIT 1;
    v_full := v_mark.looked_at IS NULL OR v_now NOT BETWEEN v_mark.looked_at AND v_mark.looked_at + interval '1 second';

    IF v_full THEN
        IF EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type AND lease_until <= v_now) THEN
            PERFORM mq.rescue(p_queue, CASE WHEN p_take THEN 1 ELSE 20 END);
        END IF;
        v_mark.promoted_to := '-infinity';
    END IF;

    IF EXISTS (
        SELECT FROM mq.delayed
        WHERE type = p_queue.type AND run_at > v_mark.promoted_to AND run_at <= v_now
    ) THEN
        SELECT * INTO v_due FROM mq.promote(p_queue, v_mark.promoted_to, v_now, v_promote);
        v_all_promoted := v_due.moved < v_promote;
        IF NOT v_full THEN
            -- What has become due before the place of its priority's mark lowers that mark.
            FOR v_due_place IN
                SELECT d.run_at, d.id, k.i
                FROM unnest(v_due.priorities, v_due.run_ats, v_due.ids) AS d (priority, run_at, id)
                JOIN unnest(v_mark.priorities, v_mark.run_ats, v_mark.ids) WITH ORDINALITY AS k (priority, run_at, id, i)
                    ON k.priority = d.priority AND (k.run_at, k.id) > (d.run_at, d.id)
            LOOP
                v_mark.run_ats[v_due_place.i] := v_due_place.run_at;
                v_mark.ids[v_due_place.i] := v_due_place.id;
                v_write := true;
            END LOOP;
        END IF;
    END IF;

    IF p_queue.ordered THEN
        SELECT o.picked, o.attempts INTO picked, attempts
        FROM mq.pick_ordered(p_queue.type, p_size, p_take) AS o;
        IF v_full AND picked IS NOT NULL THEN
            INSERT INTO mq.mark (n, looked_at, promoted_to, type, priorities, run_ats, ids)
            VALUES (coalesce(v_mark.n, 0) + 1, v_now, '-infinity', p_queue.type, '{}', '{}', '{}');
            DELETE FROM mq.mark
            WHERE ctid = ANY (ARRAY(
                SELECT ctid
                FROM mq.mark
                WHERE type = p_queue.type AND n BETWEEN v_mark.n - 20 AND v_mark.n
                FOR UPDATE SKIP LOCKED
            ));
        END IF;
        RETURN;
    END IF;

    -- Known priorities begin at their marks, the gaps between them at their start; a full look is one wide gap.
    LOOP
        v_next := CASE WHEN v_full THEN 32768 ELSE coalesce(v_mark.priorities[i], 32768) END;
        IF v_next - v_above > 1 AND (v_full OR (
            SELECT id
            FROM mq.ready
            WHERE type = p_queue.type AND priority > v_above AND priority < v_next
            ORDER BY type, priority, run_at, id
            LIMIT 1
        ) IS NOT NULL) THEN
            WITH gone AS (
                DELETE FROM mq.ready
                WHERE ctid = ANY (ARRAY(
                    SELECT ctid
                    FROM mq.ready
                    WHERE type = p_queue.type AND priority > v_above AND priority < v_next
                    ORDER BY type, priority, run_at, id
                    LIMIT p_size - coalesce(cardinality(picked), 0)
                    FOR UPDATE SKIP LOCKED
                ))
                RETURNING *
            ), place AS (
                SELECT *, row_number() OVER (PARTITION BY priority ORDER BY run_at, id) = 1 AS first
                FROM gone
                ORDER BY priority, run_at, id
            )
            SELECT array_agg(p.id) AS ids, array_agg((p.attempts + 1)::smallint) AS attempts,
                array_agg(p.priority) FILTER (WHERE p.first) AS priorities,
                array_agg(p.run_at) FILTER (WHERE p.first) AS run_ats,
                array_agg(p.id) FILTER (WHERE p.first) AS first_ids
            INTO v_found
            FROM place AS p;
            IF v_found.ids IS NOT NULL THEN
                picked := picked || v_found.ids;
                attempts := attempts || v_found.attempts;
                v_write := v_write OR v_full;
                -- A priority that has no mark yet gets one from the full look of the next claim.
                v_learn := NOT v_full AND cardinality(v_mark.priorities) < c_marks;
            END IF;
            IF v_full AND v_found.ids IS NOT NULL THEN
                SELECT (array_agg(l.priority ORDER BY l.priority))[:c_marks],
                    (array_agg(l.run_at ORDER BY l.priority))[:c_marks],
                    (array_agg(l.id ORDER BY l.priority))[:c_marks]
                INTO v_mark.priorities, v_mark.run_ats, v_mark.ids
                FROM (
                    SELECT DISTINCT ON (u.priority) u.priority, u.run_at, u.id
                    FROM (
                        SELECT m.priority, m.run_at, m.id, false AS fresh
                        FROM unnest(v_mark.priorities, v_mark.run_ats, v_mark.ids) AS m (priority, run_at, id)
                        UNION ALL
                        SELECT f.priority, f.run_at, f.id, true
                        FROM unnest(v_found.priorities, v_found.run_ats, v_found.first_ids) AS f (priority, run_at, id)
                    ) AS u
                    ORDER BY u.priority, u.fresh DESC
                ) AS l;
            END IF;
        END IF;
        EXIT WHEN v_next = 32768 OR cardinality(picked) >= p_size;

        v_from_run_at := least(v_mark.run_ats[i], v_now - interval '1 second');
        v_from_id := CASE WHEN v_from_run_at = v_mark.run_ats[i] THEN v_mark.ids[i] ELSE 0 END;
        WITH gone AS (
            DELETE FROM mq.ready
            WHERE ctid = ANY (ARRAY(
                SELECT ctid
                FROM mq.ready
                WHERE type = p_queue.type AND priority = v_next AND (run_at, id) >= (v_from_run_at, v_from_id)
                ORDER BY type, priority, run_at, id
                LIMIT p_size - coalesce(cardinality(picked), 0)
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING *
        )
        SELECT array_agg(g.id) AS ids, array_agg((g.attempts + 1)::smallint) AS attempts, min(g.run_at) AS run_at
        INTO v_found
        FROM (SELECT * FROM gone ORDER BY run_at, id) AS g;
        IF v_found.ids IS NOT NULL THEN
            picked := picked || v_found.ids;
            attempts := attempts || v_found.attempts;
            v_write := v_write OR v_found.ids[1] NOT BETWEEN v_mark.ids[i] - c_stride AND v_mark.ids[i] + c_stride;
            v_mark.run_ats[i] := v_found.run_at;
            v_mark.ids[i] := v_found.ids[1];
        END IF;
        EXIT WHEN cardinality(picked) >= p_size;
        v_above := v_next;
        i := i + 1;
    END LOOP;

    IF v_full AND picked IS NULL AND cardinality(v_mark.priorities) > 0
        AND clock_timestamp() > v_now + interval '5 milliseconds'
    THEN
        -- Nothing there but many dead rows to walk: idle consumers need not do it all the time.
        v_mark.run_ats := array_fill(v_now, ARRAY[cardinality(v_mark.priorities)]);
        v_mark.ids := array_fill(0::bigint, ARRAY[cardinality(v_mark.priorities)]);
        v_write := true;
    END IF;
    IF v_write OR v_learn THEN
        INSERT INTO mq.mark (n, looked_at, promoted_to, type, priorities, run_ats, ids)
        VALUES (
            coalesce(v_mark.n, 0) + 1,
            CASE WHEN v_learn THEN '-infinity' WHEN v_full THEN v_now ELSE v_mark.looked_at END,
            CASE WHEN v_all_promoted THEN v_now ELSE '-infinity' END,
            p_queue.type, v_mark.priorities, v_mark.run_ats, v_mark.ids
        );
        -- A mark that another claim is deleting stays until a later one passes by: they are few and never read.
        DELETE FROM mq.mark
        WHERE ctid = ANY (ARRAY(
            SELECT ctid
            FROM mq.mark
            WHERE type = p_queue.type AND n BETWEEN v_mark.n - 20 AND v_mark.n
            FOR UPDATE SKIP LOCKED
        ));
    END IF;
END
$$;
