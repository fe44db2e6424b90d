-- is_held: whether an open transaction holds one of the messages of a batch; if not, none can until the caller's transaction
--          ends.
-- Returns:     held: 1 or 0
CREATE OR ALTER PROCEDURE imq_is_held (p_batch_key mq_key)
RETURNS (held smallint)
AS
DECLARE v_id bigint;
BEGIN
    held = 0;
    FOR SELECT COALESCE(b.id, c.id)
        FROM mq_batch AS b LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
        WHERE b.batch_key = :p_batch_key
        INTO v_id
    DO
        SELECT id FROM mq_message WHERE id = :v_id FOR UPDATE WITH LOCK INTO v_id;
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        held = 1;
END
