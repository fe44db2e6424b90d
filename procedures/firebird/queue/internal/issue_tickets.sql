-- issue_tickets: write a ticket for a group of a grouped queue that has due messages and is not blocked.
--
-- The first message of a group may be one that another transaction is cancelling. So the first message gets a ticket, and
-- also the first message that no transaction is deleting. An extra ticket does no harm. A ticket at the message's own
-- position is left alone if this call can lock it: then no claim is dropping it. Otherwise a new ticket goes just before
-- it.
CREATE OR ALTER PROCEDURE imq_issue_tickets (p_type mq_name, p_group_key mq_name)
AS
DECLARE v_id bigint;
DECLARE v_attempts smallint; DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_first smallint = 1;
DECLARE v_free integer; DECLARE v_done integer;
BEGIN
    FOR SELECT id, attempts
        FROM mq_grouped
        WHERE type = :p_type AND group_key = :p_group_key
        ORDER BY type, group_key, id
        INTO v_id, v_attempts
    DO
    BEGIN
        BEGIN
            UPDATE mq_grouped SET attempts = attempts WHERE type = :p_type AND group_key = :p_group_key AND id = :v_id;
            v_free = ROW_COUNT;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_free = 0;
        END
        IF (v_first = 1 OR v_free = 1) THEN
        BEGIN
            v_run_at = NULL;
            SELECT priority, run_at FROM mq_message WHERE id = :v_id INTO v_priority, v_run_at;
            v_done = IIF(v_run_at IS NULL, 1, 0);
            IF (v_done = 0) THEN
            BEGIN
                UPDATE mq_ready SET attempts = attempts
                WHERE type = :p_type AND priority = :v_priority AND run_at = :v_run_at AND id = :v_id;
                v_done = ROW_COUNT;
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_done = 0;
            END
            IF (v_done = 0) THEN
                EXECUTE PROCEDURE imq_place_ready(p_type, v_priority, v_run_at, v_id, v_attempts) RETURNING_VALUES v_run_at;
        END
        IF (v_free = 1) THEN
            LEAVE;
        v_first = 0;
    END
END
