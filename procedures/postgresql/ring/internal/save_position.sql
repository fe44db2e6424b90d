-- save_position: save a new position in mq.ring, of a round-robin consumer or of a priority of a fair queue.
-- Arguments: p_start (the one that the claim read; its n is NULL: there was none)
--
-- A position is inserted, not updated: no session waits for it. When two claims start at the same position, the one further
-- ahead counts, in whichever order they commit. Positions from p_start on are deleted; at the end of a round, all of the
-- last two rounds, which concurrent claims may have left.
CREATE OR REPLACE FUNCTION mq_internal.save_position(p_place mq.ring, p_start mq.ring) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_same_round boolean := p_place.n = p_start.n;
BEGIN
    INSERT INTO mq.ring SELECT p_place.*;
    DELETE FROM mq.ring
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.ring
        WHERE type = p_place.type AND consumer = p_place.consumer
            AND (n, lane, after_id) < (p_place.n, p_place.lane, p_place.after_id)
            AND (n, lane, after_id) >= (
                CASE WHEN v_same_round THEN p_start.n ELSE p_start.n - 1 END,
                CASE WHEN v_same_round THEN p_start.lane ELSE '' END,
                CASE WHEN v_same_round THEN p_start.after_id ELSE 0 END
            )
        FOR UPDATE SKIP LOCKED
    ));
END
$$;
