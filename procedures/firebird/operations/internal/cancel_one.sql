-- cancel_one: delete a message that is new or dead, mark one that is active; state: the one it had, or that prevents it.
CREATE OR ALTER PROCEDURE imq_cancel_one (p_id bigint)
RETURNS (affected bigint, state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_type mq_name;
DECLARE v_grouped smallint;
DECLARE v_tries integer = 3;
BEGIN
    affected = 0;
    SELECT m.type FROM mq_message AS m WHERE m.id = :p_id INTO v_type;
    -- More than one try only if another transaction ends the attempt at the same time.
    WHILE (v_type IS NOT NULL AND affected = 0 AND v_tries > 0) DO
    BEGIN
        v_tries = v_tries - 1;
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        -- One after the other: so the state is the one from which it was deleted.
        state = 'N';
        EXECUTE PROCEDURE imq_erase(v_type, p_id, 'N', v_grouped) RETURNING_VALUES affected;
        IF (affected = 0) THEN
        BEGIN
            state = 'E';
            EXECUTE PROCEDURE imq_erase(v_type, p_id, 'E', v_grouped) RETURNING_VALUES affected;
        END
        IF (affected = 0 AND imq_state_of(p_id) IS DISTINCT FROM 'A') THEN
            LEAVE;
        IF (affected = 0) THEN
        BEGIN
            -- Heartbeats do not need this lock. A call that ends the attempt does: it sees the mark, or this call continues
            -- with the state that it leaves. From 4.0 on, the engine begins the call again if the message has been locked
            -- since.
            EXECUTE PROCEDURE imq_lock_message(p_id);
            -- Not state_of: on 3.0 it reads one table after the other, and a message that changes its table looks active.
            IF (imq_is_active(v_type, p_id) = 1) THEN
            BEGIN
                state = 'A';
                affected = 1;
                IF (NOT EXISTS (SELECT * FROM mq_cancelled WHERE id = :p_id)) THEN
                BEGIN
                    INSERT INTO mq_cancelled (id, cancelled_at) VALUES (:p_id, mq_utc_now());
                    UPDATE mq_message SET has_steps = 1 WHERE id = :p_id AND has_steps IS NULL;
                END
            END
        END
    END
    IF (affected = 0) THEN
        state = imq_state_of(p_id);
    SUSPEND;
END
