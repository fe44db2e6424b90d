-- save_position: save the position of a round-robin reader, and delete its older positions.
-- Arguments:   p_type, p_reader, p_size (of the claim), p_n and p_after_id (the round and the last id), p_old_n and
--              p_old_after_id (the position that the claim read; NULL: there was none)
-- Transaction: joins the caller's; never waits for another claim
--
-- A position is inserted, not updated: no session waits for it. When two claims of one reader start at the same position,
-- the position further ahead counts, in whichever order they commit.

CREATE OR REPLACE FUNCTION mq_internal.save_position(
    p_type text,
    p_reader text,
    p_size bigint,
    p_n bigint,
    p_after_id bigint,
    p_old_n bigint,
    p_old_after_id bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    -- Delete positions up to this many claims back: concurrent claims of this reader may have left some.
    c_claims CONSTANT integer := 20;
    -- At the end of a round, delete all remaining positions of the last two rounds.
    v_same_round boolean := p_n = p_old_n;
    v_first_n bigint := CASE WHEN v_same_round THEN p_old_n ELSE p_old_n - 1 END;
    v_first_after_id bigint := CASE WHEN v_same_round THEN p_old_after_id - c_claims * p_size ELSE 0 END;
BEGIN
    INSERT INTO mq.ring (n, after_id, type, reader) VALUES (p_n, p_after_id, p_type, p_reader);
    DELETE FROM mq.ring
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM mq.ring
        WHERE type = p_type AND reader = p_reader AND (n, after_id) <= (p_old_n, p_old_after_id)
            AND (n, after_id) >= (v_first_n, v_first_after_id)
        FOR UPDATE SKIP LOCKED
    ));
END
$$;
