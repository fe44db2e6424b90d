-- drop_tickets: delete the tickets of messages, as far as no other claim has them locked.
-- Arguments:   p_type, p_ids (NULL: none)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; never waits
-- Example:     SELECT mq.drop_tickets('invoice', ARRAY[17]);

CREATE OR REPLACE FUNCTION mq.drop_tickets(
    p_type text,
    p_ids bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM mq.ready
    WHERE ctid = ANY (ARRAY(
        SELECT r.ctid
        FROM unnest(p_ids) AS u (id)
        CROSS JOIN LATERAL (
            -- A range with an order, where an equality would do: see erase.
            SELECT t.ctid FROM mq.ready AS t
            WHERE t.type = p_type AND t.id BETWEEN u.id AND u.id
            ORDER BY t.type, t.id
            FOR UPDATE SKIP LOCKED
        ) AS r
    ));
END
$$;
