-- join_group: add the message of a ticket to its group, if the message is ready and not in the group yet.
-- Arguments:   p_type, p_group_key ('' for messages without one), p_id, p_attempts
-- Transaction: joins the caller's, which holds the group's lock (lock_group)
--
-- A message outside its group is active, failed or finished, and stays outside. Or a transaction sent it before it could
-- see that the queue is grouped: then it is added now.

CREATE OR REPLACE FUNCTION mq_internal.join_group(
    p_type text,
    p_group_key text,
    p_id bigint,
    p_attempts smallint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO mq.grouped (id, attempts, type, group_key)
    SELECT m.id, p_attempts, m.type, p_group_key
    FROM mq.message AS m
    WHERE m.id = p_id
        AND NOT EXISTS (
            SELECT FROM mq.group_lock AS l WHERE l.type = p_type AND l.group_key = p_group_key AND l.id = m.id
        )
        AND NOT EXISTS (SELECT FROM mq.dead AS d WHERE d.id = ANY (ARRAY[m.id]) ORDER BY d.id OFFSET 0)
        AND NOT EXISTS (SELECT FROM mq.delayed AS d WHERE d.id = ANY (ARRAY[m.id]) ORDER BY d.id OFFSET 0)
    ON CONFLICT DO NOTHING;
END
$$;
