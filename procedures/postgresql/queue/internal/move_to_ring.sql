-- move_to_ring: give the messages of a type that a ring does not see yet to the index by id, in steps.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT mq.move_to_ring('crawl');
--
-- A ring sees rows of mq.ready with by_id. The row of mq.ring_type tells senders to set it, so without it are only messages
-- of senders that have asked before that row was committed. A sender asks when it has its transaction number, or sets by_id
-- in any case (see send). Hence a scan that begins when all numbers given before are of transactions that have ended, and
-- that finds no row locked, is the last one.

CREATE OR REPLACE FUNCTION mq.move_to_ring(
    p_type text
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    -- Rows that one claim reads; the others pass over what it has locked.
    c_rows CONSTANT integer := 2000;
    v_me xid8 := pg_current_xact_id();
    v_snapshot pg_snapshot;
    v_ring mq.ring_type;
    v_found record;
    v_moved record;
BEGIN
    -- One claim of a type at a time, until it commits.
    IF NOT mq.lock_group(p_type, '') THEN
        RETURN;
    END IF;
    INSERT INTO mq.ring_type (type, created_by, last_scan, complete) VALUES (p_type, v_me, false, false)
    ON CONFLICT DO NOTHING;
    SELECT pg_current_snapshot() AS snapshot, r AS ring INTO v_found FROM mq.ring_type AS r WHERE r.type = p_type;
    v_snapshot := v_found.snapshot;
    v_ring := v_found.ring;
    IF v_ring.complete IS NOT false THEN
        RETURN;
    END IF;
    IF v_ring.id IS NULL THEN
        v_ring.last_scan := coalesce(v_ring.senders_before <= pg_snapshot_xmin(v_snapshot), false);
        v_ring.priority := -32769;
        v_ring.run_at := '-infinity';
        v_ring.id := 0;
    END IF;
    -- Numbers of the future come from another server, by a restore.
    IF v_ring.created_by <> v_me AND coalesce(v_ring.senders_before > pg_snapshot_xmax(v_snapshot), true) THEN
        v_ring.senders_before := pg_snapshot_xmax(v_snapshot);
    END IF;

    SELECT count(*) AS rows, array_agg(r.ctid) FILTER (WHERE r.by_id IS NULL) AS outside,
        (array_agg(r.priority))[count(*)] AS priority, (array_agg(r.run_at))[count(*)] AS run_at,
        (array_agg(r.id))[count(*)] AS id
    INTO v_found
    FROM (
        SELECT q.ctid, q.* FROM mq.ready AS q
        WHERE q.type = p_type AND (q.priority, q.run_at, q.id) > (v_ring.priority, v_ring.run_at, v_ring.id)
        ORDER BY q.type, q.priority, q.run_at, q.id
        LIMIT c_rows
    ) AS r;
    IF v_found.outside IS NOT NULL THEN
        WITH moved AS (
            UPDATE mq.ready SET by_id = true
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.ready WHERE ctid = ANY (v_found.outside) AND type = p_type FOR UPDATE SKIP LOCKED
            ))
            RETURNING id
        )
        SELECT count(*) AS rows, min(id) AS lowest INTO v_moved FROM moved;
        IF v_moved.rows > 0 THEN
            PERFORM mq.lower_ring(p_type, v_moved.lowest);
        END IF;
        -- What is locked may stay.
        v_ring.last_scan := v_ring.last_scan AND v_moved.rows = cardinality(v_found.outside);
    END IF;
    IF v_found.rows = c_rows THEN
        v_ring.priority := v_found.priority;
        v_ring.run_at := v_found.run_at;
        v_ring.id := v_found.id;
    ELSE
        v_ring.id := NULL;
        v_ring.complete := v_ring.last_scan;
    END IF;
    UPDATE mq.ring_type AS r
    SET senders_before = v_ring.senders_before, last_scan = v_ring.last_scan, priority = v_ring.priority,
        run_at = v_ring.run_at, id = v_ring.id, complete = v_ring.complete
    WHERE r.type = p_type;
END
$$;
