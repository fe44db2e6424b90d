-- free_groups: free the place of a message in its group, and issue a ticket for the group unless it is blocked.
--
-- A group that is blocked by its first message gets a ticket when that message returns. If the message had a place, places are
-- not counted here: if several calls end at the same time after the limit was lowered, none of them would see the last place
-- become free. A message without a place was waiting: its ticket may have stood for the group.
--
-- A claim that drops tickets may have updated the row, in a transaction that ends at once: see drop_blocked.
CREATE OR ALTER PROCEDURE imq_free_groups (p_type mq_name, p_group_key mq_name, p_id bigint)
AS
DECLARE v_until timestamp;
DECLARE v_had integer;
BEGIN
    p_group_key = COALESCE(p_group_key, '');
    WHILE (v_had IS NULL) DO
    BEGIN
        DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
        v_had = ROW_COUNT;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
    -- Do not call group_waits here: a function call per message costs more than the query.
    IF (NOT EXISTS (
        SELECT *
        FROM mq_group_lock AS l
        WHERE l.type = :p_type AND l.group_key = :p_group_key AND EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
    )) THEN
        IF (v_had = 1 OR imq_group_places(p_type, p_group_key, NULL) > 0) THEN
            EXECUTE PROCEDURE imq_issue_tickets(p_type, p_group_key);
END
