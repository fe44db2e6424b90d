-- convert_rows: bring rows of mq.ready, at most p_size, into the form of the settings ring and fair; skip locked rows.
-- Transaction: never waits for a claim
--
-- Rows of another form are of before set_queue, or of senders that read the settings before it committed. A sender reads
-- them after it has its transaction ID. So a claim that sees the change takes a new ID: all such senders have a lower one.
-- When they have ended and a later search leaves no row, the queue is not mixed any more. A sender with a snapshot sets
-- by_id, and so do all other calls: claims find such rows later too (see make_ready).
CREATE OR REPLACE FUNCTION mq_internal.convert_rows(p_queue mq.queue, p_size bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_me bigint := pg_current_xact_id()::text;
    v_new bigint;
    v_oldest xid8 := pg_snapshot_xmin(pg_current_snapshot());
    v_rows bigint;
BEGIN
    UPDATE mq.ready AS r
    SET by_id = coalesce(r.by_id, false),
        lane = mq_internal.lane(p_queue.fair OR p_queue.grouped, r.priority, (SELECT m.group_key FROM mq.message AS m WHERE m.id = r.id))
    WHERE r.ctid = ANY (ARRAY(
        SELECT q.ctid FROM mq.ready AS q
        WHERE q.type = p_queue.type AND (q.by_id IS NULL AND (p_queue.ring OR p_queue.fair) OR (q.lane IS NULL) = (p_queue.fair OR p_queue.grouped))
        ORDER BY q.type, q.priority, q.run_at, q.id
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    IF NOT p_queue.mixed THEN
        RETURN;
    END IF;
    -- An ID in the future comes from another server, through a restore.
    IF coalesce(p_queue.senders_before::text::bigint > v_me + 1000000, true) THEN
        BEGIN
            -- The EXCEPTION makes this a subtransaction, which gets an ID of its own now.
            UPDATE mq.queue SET senders_before = NULL
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.queue
                WHERE type = p_queue.type AND mixed AND senders_before IS NOT DISTINCT FROM p_queue.senders_before
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING xmin::text INTO v_new;
        EXCEPTION
            WHEN no_data_found THEN NULL;
        END;
        -- xmin has only the lower 32 bits.
        UPDATE mq.queue
        SET senders_before = (v_me + (v_new - v_me % 4294967296 + 4294967296) % 4294967296)::text::xid8
        WHERE type = p_queue.type AND v_new IS NOT NULL;
    ELSIF p_queue.senders_before <= v_oldest AND v_rows = 0 AND NOT EXISTS (
        -- Rows that another transaction has locked.
        SELECT FROM mq.ready AS q
        WHERE q.type = p_queue.type AND (q.by_id IS NULL AND (p_queue.ring OR p_queue.fair) OR (q.lane IS NULL) = (p_queue.fair OR p_queue.grouped))
        ORDER BY q.type, q.priority, q.run_at, q.id OFFSET 0
    ) THEN
        UPDATE mq.queue SET mixed = false, senders_before = NULL
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.queue
            WHERE type = p_queue.type AND mixed AND senders_before = p_queue.senders_before
            FOR UPDATE SKIP LOCKED
        ));
    END IF;
END
$$;
