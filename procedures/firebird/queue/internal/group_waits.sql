-- group_waits: whether the first message of a group blocks it: the message is in mq_delayed until its next attempt or a
--              token.
-- Arguments:   p_type, p_group_key ('' for none)
-- Returns:     1 or 0

SET TERM ^ ;

CREATE OR ALTER FUNCTION imq_group_waits (
    p_type mq_name,
    p_group_key mq_name
)
RETURNS smallint
AS
BEGIN
    RETURN IIF(EXISTS (
        SELECT *
        FROM mq_group_lock AS l
        WHERE l.type = :p_type AND l.group_key = :p_group_key AND EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
    ), 1, 0);
END^

SET TERM ; ^
