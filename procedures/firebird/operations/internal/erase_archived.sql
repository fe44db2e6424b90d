-- erase_archived: delete archived messages, the oldest first.
-- Arguments:   p_type (NULL: all), p_before (only messages completed earlier; NULL: any), p_size (the most messages to
--              delete)
-- Returns:     gone: the number of deleted messages
-- Transaction: joins the caller's, which is READ COMMITTED NO WAIT; skips rows that another call is deleting
CREATE OR ALTER PROCEDURE imq_erase_archived (p_type mq_name, p_before timestamp, p_size integer)
RETURNS (gone bigint)
AS
DECLARE v_id bigint;
DECLARE v_before timestamp;
BEGIN
    gone = 0;
    v_before = COALESCE(p_before, CAST('9999-12-31 23:59:59.9999' AS timestamp));
    IF (p_type IS NULL) THEN
        FOR
            SELECT id FROM mq_archive WHERE completed_at < :v_before
            PLAN (mq_archive ORDER mq_archive_age)
            ORDER BY completed_at
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
    ELSE
        FOR
            SELECT id FROM mq_archive WHERE type = :p_type AND completed_at < :v_before
            PLAN (mq_archive ORDER mq_archive_type)
            ORDER BY type, completed_at, id
            INTO v_id
            AS CURSOR d
        DO
        BEGIN
            BEGIN
                DELETE FROM mq_archive WHERE CURRENT OF d;
                gone = gone + 1;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_id = NULL;
            END
            IF (gone = p_size) THEN
                LEAVE;
        END
END
