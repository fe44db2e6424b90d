-- get_state: the state of a message.
-- Arguments:   p_id (the message)
-- Returns:     state: N (new), A (active), E (dead), C (archived); NULL: completed and not archived, deleted, or never sent
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_get_state(17);
CREATE OR ALTER PROCEDURE mq_get_state (
    p_id bigint
)
RETURNS (state varchar(1) CHARACTER SET ASCII)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_record_version;
    state = imq_state_of(p_id);
    SUSPEND;
END
