-- issue_tickets: in an ordered queue, make groups that have something due and nobody at work claimable.
-- Arguments:   p_type, p_groups (group keys, '' for none)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.issue_tickets('invoice', ARRAY['customer-7']);

CREATE OR REPLACE FUNCTION mq.issue_tickets(
    p_type text,
    p_groups text[]
) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO mq.ready (run_at, id, priority, attempts, type)
    SELECT m.run_at, h.id, m.priority, h.attempts, m.type
    FROM (SELECT DISTINCT unnest(p_groups)) AS k (group_key)
    CROSS JOIN LATERAL (
        SELECT g.id, g.attempts
        FROM mq.grouped AS g
        WHERE g.type = p_type AND g.group_key = k.group_key
        ORDER BY g.type, g.group_key, g.id
        LIMIT 1
    ) AS h
    JOIN mq.message AS m ON m.id = h.id
    ON CONFLICT DO NOTHING;
$$;
