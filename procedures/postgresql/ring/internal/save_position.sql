-- save_position: save a new position in mq.ring, of a round-robin consumer or of a priority of a fair queue.
-- Arguments: p_start (the one that the claim read; its n is NULL: there was none)
--
-- A position is inserted, not updated: no session waits for it. When two claims start at the same position, the one further
-- ahead counts, in whichever order they commit. Positions from p_start on in its lane are deleted; at the end of a round,
-- all of the last two rounds, which concurrent claims may have left.
CREATE OR REPLACE FUNCTION mq_internal.save_position(p_place mq.ring, p_start mq.ring) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mq.ring SELECT p_place.*;
    IF p_place.n = p_start.n THEN
        -- A comparison of rows would end this scan only at the end of the round: a snapshot keeps all its dead positions.
        DELETE FROM mq.ring
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.ring
            WHERE type = p_place.type AND consumer = p_place.consumer AND n = p_start.n AND lane = p_start.lane
                AND after_id >= p_start.after_id AND (lane, after_id) < (p_place.lane, p_place.after_id)
            FOR UPDATE SKIP LOCKED
        ));
    ELSE
        DELETE FROM mq.ring
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.ring
            WHERE type = p_place.type AND consumer = p_place.consumer AND n < p_place.n AND n >= p_start.n - 1
            FOR UPDATE SKIP LOCKED
        ));
    END IF;
END
$$;
