-- free_groups: a message leaves the hands of its consumer: its group goes on.
-- Arguments:   p_type, p_group_key (NULL: none), p_id
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_free_groups('invoice', 'customer-7', 17);
--
-- A group that waits for its first message gets a ticket when that comes back. Places are not counted: of several calls that end at
-- one moment, after the limit was lowered, none would see the last place become free.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_free_groups (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint
)
AS
BEGIN
    p_group_key = COALESCE(p_group_key, '');
    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
    -- Not by group_waits: a function would cost each message more than the question.
    IF (ROW_COUNT = 1 AND NOT EXISTS (
        SELECT *
        FROM mq_group_lock AS l
        WHERE l.type = :p_type AND l.group_key = :p_group_key AND EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
    )) THEN
        EXECUTE PROCEDURE mq_issue_tickets(p_type, p_group_key);
END^

SET TERM ; ^
