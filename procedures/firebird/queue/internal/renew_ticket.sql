-- renew_ticket: write a ticket for a group whose message of state N was removed, unless all places of the group are taken.
-- Arguments:   p_type, p_group_key ('' for none), p_id
-- Transaction: joins the caller's, which is NO WAIT

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_renew_ticket (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint
)
AS
BEGIN
    -- The message was the first of its group and blocked it until a retry or a token, or its ticket stood for the group.
    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
    IF (ROW_COUNT = 1 OR imq_group_places(p_type, p_group_key, NULL) > 0) THEN
        EXECUTE PROCEDURE imq_issue_tickets(p_type, p_group_key);
END^

SET TERM ; ^
