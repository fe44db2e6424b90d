-- cancel: delete one new or dead message.
-- Arguments:   p_id (the message)
-- Returns:     count: 1; 0 when the message is active, is being claimed at this moment, or does not exist
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; never waits for a claim
-- Example:     SELECT * FROM mq_cancel(17);

CREATE OR ALTER PROCEDURE mq_cancel (
    p_id bigint
)
RETURNS ("COUNT" bigint)
AS
DECLARE v_type mq_name;
DECLARE v_grouped smallint;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_read_committed;
    "COUNT" = 0;
    SELECT m.type FROM mq_message AS m WHERE m.id = :p_id INTO v_type;
    IF (v_type IS NOT NULL) THEN
    BEGIN
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        EXECUTE PROCEDURE imq_erase(v_type, p_id, 'NE', v_grouped) RETURNING_VALUES "COUNT";
    END
    SUSPEND;
END
