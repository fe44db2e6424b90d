-- take_new: find rows to claim for the first time: ready rows, and lost rows at active_value.
-- Arguments: p_size (0: none)
-- Returns: parallel arrays: hashes, idents, keys, rows, parts and places; fresh: how many of them are ready rows; these
--     come first
-- Transaction: skips rows that others have locked
CREATE OR REPLACE FUNCTION mq_internal.take_new(
    p_polled mq.polled, p_shape jsonb, p_size bigint, p_now timestamptz, OUT hashes bigint[], OUT idents jsonb[],
    OUT keys text[], OUT rows text[], OUT parts oid[], OUT places tid[], OUT fresh integer
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    -- The expensive steps run at most once a second: a scan from the start, a scan for lost rows, and the check of the
    -- index.
    v_recent boolean := coalesce(p_polled.scanned_at BETWEEN p_now - interval '1 second' AND p_now, false);
    v_from_place boolean := v_recent AND p_shape->>'shape' = 'e' AND p_shape->>'order' IS NOT NULL AND p_polled.place IS NOT NULL;
    v_lost record;
    v_new record;
BEGIN
    IF NOT v_recent THEN
        PERFORM mq_internal.require_index((p_shape->>'table')::oid,
            (SELECT array_agg(c.name) FROM jsonb_array_elements_text(nullif(p_shape->'indexed', 'null')) AS c (name)));
    END IF;
    SELECT * INTO v_lost FROM mq_internal.gather_rows(p_polled, p_shape, CASE WHEN v_recent THEN 0 ELSE p_size END, true, false);
    LOOP
        SELECT * INTO v_new FROM mq_internal.gather_rows(p_polled, p_shape, p_size - v_lost.count, false, v_from_place);
        EXIT WHEN NOT v_from_place OR v_new.count = p_size;
        -- Rows may have appeared before the low-water mark.
        v_from_place := false;
    END LOOP;
    IF v_recent AND v_new.count < p_size THEN
        SELECT * INTO v_lost FROM mq_internal.gather_rows(p_polled, p_shape, p_size - v_new.count, true, false);
    END IF;
    IF v_new.count + v_lost.count > 0 AND (NOT v_recent OR p_shape->>'shape' IN ('b', 'd', 'e')) THEN
        PERFORM mq_internal.move_polled(p_polled.name, p_shape->>'pass',
            CASE WHEN p_shape->>'shape' IN ('b', 'd', 'e') THEN v_new.sorted[v_new.count] END,
            v_new.hashes[v_new.count], v_new.copies[v_new.count], CASE WHEN NOT v_from_place THEN p_now END);
    END IF;
    fresh := v_new.count;
    hashes := v_new.hashes || v_lost.hashes;
    idents := v_new.idents || v_lost.idents;
    keys := v_new.keys || v_lost.keys;
    rows := v_new.rows || v_lost.rows;
    parts := v_new.parts || v_lost.parts;
    places := v_new.places || v_lost.places;
END
$$;
