-- drop_cancelled: delete a message whose attempt has ended, but not as done, if it was cancelled.
-- Returns:     gone: 1 or 0; then it cannot be cancelled until the caller's transaction ends
-- Transaction: waits for a cancel of the message, as lock_message does
CREATE OR ALTER PROCEDURE imq_drop_cancelled (p_type mq_name, p_id bigint, p_grouped smallint)
RETURNS (gone integer)
AS
BEGIN
    gone = 0;
    EXECUTE PROCEDURE imq_lock_message(p_id);
    IF (EXISTS (SELECT * FROM mq_cancelled WHERE id = :p_id)) THEN
        EXECUTE PROCEDURE imq_erase(p_type, p_id, 'A', p_grouped) RETURNING_VALUES gone;
END
