-- lock_ticket: lock a ticket of a grouped queue and its message until the transaction ends.
-- Arguments:   p_type, p_group_key ('' for none), p_id, p_priority and p_run_at (the ticket's position)
-- Returns:     locked: 1; 0 when the ticket or the message is gone, or another transaction has locked it
-- Transaction: joins the caller's, which is NO WAIT

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_lock_ticket (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint,
    p_priority smallint,
    p_run_at timestamp
)
RETURNS (
    locked integer
)
AS
BEGIN
    UPDATE mq_ready SET attempts = attempts
    WHERE type = :p_type AND priority = :p_priority AND run_at = :p_run_at AND id = :p_id;
    locked = ROW_COUNT;
    UPDATE mq_grouped SET attempts = attempts WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
    locked = IIF(locked + ROW_COUNT = 2, 1, 0);
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        locked = 0;
END^

SET TERM ; ^
