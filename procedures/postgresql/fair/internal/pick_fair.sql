-- pick_fair: take messages of a fair queue out of mq.ready: the groups of a priority take turns.
-- Returns: picked and attempts (the number of this attempt), parallel arrays; NULL when nothing is ready
--
-- The most urgent priority comes first. In a first round each lane has one turn, and lanes that another claim is serving
-- are passed over. Only if the whole round finds too few messages, more rounds take what other claims have not locked: so
-- many consumers share a single group.
CREATE OR REPLACE FUNCTION mq_internal.pick_fair(
    p_queue mq.queue, p_size bigint, OUT picked bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := p_size;
    v_priority text := '';
    v_start mq.ring;
    v_place mq.ring;
    v_share boolean;
    v_found record;
    v_rows integer;
BEGIN
    LOOP
        v_priority := mq_internal.next_priority(p_queue.type, v_priority);
        EXIT WHEN v_priority IS NULL;
        v_start := NULL;
        v_place := NULL;
        v_share := false;
        LOOP
            v_found := mq_internal.read_lanes(p_queue, v_left, false, v_share, v_priority, v_place);
            v_rows := coalesce(cardinality(v_found.rows), 0);
            IF NOT v_share THEN
                v_start := v_found.start;
            END IF;
            IF v_rows > 0 THEN
                DELETE FROM mq.ready WHERE ctid = ANY (v_found.rows);
                picked := picked || v_found.ids;
                attempts := attempts || v_found.attempts;
                v_left := v_left - v_rows;
                v_place := ROW(v_found.n[v_rows], v_found.served[v_rows], p_queue.type, v_priority, v_found.lanes[v_rows]);
            END IF;
            EXIT WHEN v_left = 0 OR v_share AND v_rows = 0;
            v_share := true;
        END LOOP;
        IF v_place.n IS NOT NULL THEN
            PERFORM mq_internal.save_position(v_place, v_start);
        END IF;
        EXIT WHEN v_left = 0;
    END LOOP;
    IF picked IS NOT NULL THEN
        attempts := ARRAY(SELECT (unnest(attempts) + 1)::smallint);
    END IF;
END
$$;
