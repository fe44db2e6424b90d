-- cancel_one: delete a message that is new or dead, mark one that is active; state: the one it had, or that prevents it.
CREATE OR REPLACE FUNCTION mq_internal.cancel_one(p_id bigint, OUT affected bigint, OUT state text)
LANGUAGE plpgsql AS $$
DECLARE
    v_type text;
BEGIN
    affected := 0;
    -- More than one try only if another transaction ends the attempt at the same time.
    FOR i IN 1 .. 3 LOOP
        SELECT m.type INTO v_type FROM mq.message AS m WHERE m.id = p_id;
        EXIT WHEN NOT FOUND;
        -- One after the other: so the state is the one from which it was deleted.
        FOREACH state IN ARRAY ARRAY['N', 'E'] LOOP
            affected := mq_internal.erase(mq_internal.policy(v_type), ARRAY[p_id], state);
            EXIT WHEN affected = 1;
        END LOOP;
        EXIT WHEN affected = 1 OR mq_internal.state_of(p_id) IS DISTINCT FROM 'A';
        -- A heartbeat does not wait for this lock. A call that ends the attempt does: it sees the mark, or this call continues
        -- with the state that it leaves.
        PERFORM FROM mq.batch WHERE p_id = ANY (ids) FOR KEY SHARE;
        IF FOUND THEN
            state := 'A';
            affected := 1;
            UPDATE mq.message AS m SET cancelled_at = clock_timestamp() WHERE m.id = p_id AND m.cancelled_at IS NULL;
            EXIT;
        END IF;
    END LOOP;
    IF affected = 0 THEN
        state := mq_internal.state_of(p_id);
    END IF;
END
$$;
