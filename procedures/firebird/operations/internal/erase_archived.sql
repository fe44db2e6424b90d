-- erase_archived: delete archived messages of a queue, the oldest first.
-- Arguments:   p_before (only messages completed earlier), p_size (the most messages to delete)
-- Returns:     gone: the number of deleted messages
-- Transaction: joins the caller's, which is READ COMMITTED NO WAIT; skips rows that another call is deleting
CREATE OR ALTER PROCEDURE imq_erase_archived (p_type mq_name, p_before timestamp, p_size integer)
RETURNS (gone bigint)
AS
DECLARE v_id bigint;
BEGIN
    gone = 0;
    FOR
        SELECT id FROM mq_archive WHERE type = :p_type AND completed_at < :p_before
        PLAN (mq_archive ORDER mq_archive_type)
        ORDER BY type, completed_at, id
        INTO v_id
        AS CURSOR c
    DO
    BEGIN
        BEGIN
            -- Not ROW_COUNT: in a loop over a cursor it counts all iterations.
            DELETE FROM mq_archive WHERE CURRENT OF c;
            gone = gone + 1;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_id = NULL;
        END
        IF (gone = p_size) THEN
            LEAVE;
    END
END
