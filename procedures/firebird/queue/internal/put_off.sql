-- put_off: delay the first message of a group until the group's next token. promote brings it back.
-- Arguments:   p_type, p_group_key ('' for none), p_id and p_attempts (the message, already removed from mq_grouped),
--              p_run_at (the time of the token)
-- Transaction: joins the caller's, which has called lock_group

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_put_off (
    p_type mq_name,
    p_group_key mq_name,
    p_id bigint,
    p_attempts smallint,
    p_run_at timestamp
)
AS
BEGIN
    INSERT INTO mq_delayed (id, type, run_at, priority, attempts)
    SELECT :p_id, :p_type, :p_run_at, m.priority, :p_attempts FROM mq_message AS m WHERE m.id = :p_id;
    INSERT INTO mq_group_lock (type, group_key, id) VALUES (:p_type, :p_group_key, :p_id);
END^

SET TERM ; ^
