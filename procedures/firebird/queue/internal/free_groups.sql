-- free_groups: unblock a group of a grouped queue after its message was finished or dead-lettered.
-- Arguments:   p_type, p_group_key (NULL: none), p_id
-- Transaction: joins the caller's, which is NO WAIT
--
-- A group that is blocked by its first message gets a ticket when that message returns. Places are not counted here: if
-- several calls end at the same time after the limit was lowered, none of them would see the last place become free.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_free_groups (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint
)
AS
BEGIN
    p_group_key = COALESCE(p_group_key, '');
    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
    -- Do not call group_waits here: a function call per message costs more than the query.
    IF (ROW_COUNT = 1 AND NOT EXISTS (
        SELECT *
        FROM mq_group_lock AS l
        WHERE l.type = :p_type AND l.group_key = :p_group_key AND EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
    )) THEN
        EXECUTE PROCEDURE imq_issue_tickets(p_type, p_group_key);
END^

SET TERM ; ^
