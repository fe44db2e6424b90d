-- free_groups: in a grouped queue, a message leaves the hands of its consumer for good: its group goes on.
-- Arguments:   p_type, p_group_key (NULL: none), p_id
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_free_groups('invoice', 'customer-7', 17);

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_free_groups (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint
)
AS
BEGIN
    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = COALESCE(:p_group_key, '') AND id = :p_id;
    IF (ROW_COUNT = 1) THEN
        EXECUTE PROCEDURE mq_issue_tickets(p_type, COALESCE(p_group_key, ''));
END^

SET TERM ; ^
