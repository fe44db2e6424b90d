-- move_to_ring: in steps, add the messages of a type that its ring does not see yet to the index by id.
-- Arguments:   p_type, p_size and p_after (of the claim)
-- Transaction: joins the caller's; never waits for another claim
--
-- A ring reads only rows of mq.ready whose by_id is set. The row of mq.ring_type makes senders set it. Rows without it come
-- only from senders that checked before that row was committed. A sender checks after it has its transaction ID, or sets
-- by_id without a check (see send). So the scan is complete when two things hold: every transaction with an earlier ID had
-- ended before the scan began, and the scan leaves no row.
--
-- Others skip the moved rows until the caller commits, so the call leaves some rows for them.

CREATE OR REPLACE FUNCTION mq_internal.move_to_ring(
    p_type text,
    p_size bigint,
    p_after bigint
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    -- Rows per part. A claim reads at most this many parts, up to the first one that has rows to move.
    c_rows CONSTANT integer := 5000;
    c_parts CONSTANT integer := 5;
    c_left CONSTANT integer := 20;
    -- The caller saw the row before it got its ID: every transaction that did not see the row has a lower ID.
    v_above boolean := pg_current_xact_id_if_assigned() IS NULL AND EXISTS (SELECT FROM mq.ring_type WHERE type = p_type);
    v_me xid8 := pg_current_xact_id();
    -- One claim per type at a time records how far the scan has come.
    v_noted boolean := mq_internal.lock_group(p_type, '');
    v_snapshot pg_snapshot;
    v_ring mq.ring_type;
    v_found record;
    v_lowest bigint;
    v_left record;
BEGIN
    IF v_noted THEN
        INSERT INTO mq.ring_type (type, last_scan, complete) VALUES (p_type, false, false)
        ON CONFLICT DO NOTHING;
        SELECT * INTO v_ring FROM mq.ring_type WHERE type = p_type;
        v_snapshot := pg_current_snapshot();
        -- An ID in the future comes from another server, through a restore.
        IF v_above AND coalesce(v_ring.senders_before > v_me, true) THEN
            v_ring.senders_before := v_me;
        ELSIF v_ring.id IS NULL THEN
            v_ring.last_scan := coalesce(v_ring.senders_before <= pg_snapshot_xmin(v_snapshot), false);
        END IF;
    END IF;

    FOR i IN 1..c_parts LOOP
        SELECT count(*) AS rows, array_agg(r.ctid) FILTER (WHERE r.by_id IS NULL) AS outside,
            (array_agg(r.priority))[count(*)] AS priority, (array_agg(r.run_at))[count(*)] AS run_at,
            (array_agg(r.id))[count(*)] AS id
        INTO v_found
        FROM (
            SELECT q.ctid, q.* FROM mq.ready AS q
            WHERE q.type = p_type AND (q.priority, q.run_at, q.id)
                > (coalesce(v_ring.priority, -32769), coalesce(v_ring.run_at, '-infinity'), coalesce(v_ring.id, 0))
            ORDER BY q.type, q.priority, q.run_at, q.id
            LIMIT c_rows
        ) AS r;
        EXIT WHEN v_found.outside IS NOT NULL;
        v_ring.priority := CASE WHEN v_found.rows = c_rows THEN v_found.priority END;
        v_ring.run_at := CASE WHEN v_found.rows = c_rows THEN v_found.run_at END;
        v_ring.id := CASE WHEN v_found.rows = c_rows THEN v_found.id END;
        EXIT WHEN v_found.rows < c_rows;
    END LOOP;
    IF v_found.outside IS NOT NULL THEN
        WITH moved AS (
            UPDATE mq.ready SET by_id = true
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.ready
                WHERE ctid = ANY (v_found.outside) AND type = p_type AND by_id IS NULL
                ORDER BY id <= p_after, id
                LIMIT greatest(p_size, cardinality(v_found.outside) - c_left)
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id
        )
        SELECT min(id) INTO v_lowest FROM moved;
        PERFORM mq_internal.lower_ring(p_type, v_lowest);
        v_ring.last_scan := false;
        -- The next claim continues at the first row that is left.
        SELECT r.priority, r.run_at, r.id INTO v_left
        FROM mq.ready AS r
        WHERE r.ctid = ANY (v_found.outside) AND r.type = p_type AND r.by_id IS NULL
        ORDER BY r.priority, r.run_at, r.id
        LIMIT 1;
        IF FOUND THEN
            v_ring.priority := v_left.priority;
            v_ring.run_at := v_left.run_at;
            v_ring.id := v_left.id - 1;
        ELSE
            v_ring.priority := NULL;
            v_ring.run_at := NULL;
            v_ring.id := NULL;
        END IF;
    END IF;
    IF v_noted THEN
        UPDATE mq.ring_type AS r
        SET senders_before = v_ring.senders_before, last_scan = v_ring.last_scan, priority = v_ring.priority,
            run_at = v_ring.run_at, id = v_ring.id, complete = v_ring.last_scan AND v_ring.id IS NULL
        WHERE r.type = p_type;
    END IF;
END
$$;
