-- join_group: let the message of a ticket join its group, if it is ready and does not belong to it yet.
-- Arguments:   p_type, p_group_key ('' for messages without one), p_id, p_attempts
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which holds the group (lock_group)
-- Example:     SELECT mq.join_group('invoice', 'customer-7', 17, 0::smallint);
--
-- Such a message is at work, failed or finished; or it was sent by a transaction that began before the queue had
-- groups, and joins its group now.

CREATE OR REPLACE FUNCTION mq.join_group(
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
