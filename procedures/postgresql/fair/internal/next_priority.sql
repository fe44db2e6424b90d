-- next_priority: the most urgent priority of a fair queue that has ready rows, as the first five characters of its
--     lanes.
-- Arguments: p_after (a less urgent one than this; '': the first)
CREATE OR REPLACE FUNCTION mq_internal.next_priority(p_type text, p_after text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT left(r.lane, 5) FROM mq.ready AS r
        WHERE r.type = p_type AND r.by_id IS NOT NULL
            AND r.lane >= CASE WHEN p_after = '' THEN '' ELSE lpad((p_after::integer + 1)::text, 5, '0') END
        ORDER BY r.type, r.lane, r.id
        LIMIT 1
    );
END
$$;
