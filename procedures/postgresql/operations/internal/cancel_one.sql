-- cancel_one: delete a message that is new or dead; state: the one it had, or the one that prevents it.
CREATE OR REPLACE FUNCTION mq_internal.cancel_one(p_id bigint, OUT affected bigint, OUT state text)
LANGUAGE plpgsql AS $$
DECLARE
    v_type text;
BEGIN
    SELECT m.type INTO v_type FROM mq.message AS m WHERE m.id = p_id;
    affected := 0;
    IF FOUND THEN
        -- One after the other: so the state is the one from which it was deleted.
        FOREACH state IN ARRAY ARRAY['N', 'E'] LOOP
            affected := mq_internal.erase(mq_internal.policy(v_type), ARRAY[p_id], state);
            EXIT WHEN affected = 1;
        END LOOP;
    END IF;
    IF affected = 0 THEN
        state := mq_internal.state_of(p_id);
    END IF;
END
$$;
