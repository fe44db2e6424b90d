-- cancel_one: delete a message that is new or dead; state: the one it had, or the one that prevents it.
CREATE OR ALTER PROCEDURE imq_cancel_one (p_id bigint)
RETURNS (affected bigint, state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_type mq_name;
DECLARE v_grouped smallint;
BEGIN
    affected = 0;
    state = 'N';
    SELECT m.type FROM mq_message AS m WHERE m.id = :p_id INTO v_type;
    IF (v_type IS NOT NULL) THEN
    BEGIN
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        -- One after the other: so the state is the one from which it was deleted.
        EXECUTE PROCEDURE imq_erase(v_type, p_id, 'N', v_grouped) RETURNING_VALUES affected;
        IF (affected = 0) THEN
        BEGIN
            state = 'E';
            EXECUTE PROCEDURE imq_erase(v_type, p_id, 'E', v_grouped) RETURNING_VALUES affected;
        END
    END
    IF (affected = 0) THEN
        state = imq_state_of(p_id);
    SUSPEND;
END
