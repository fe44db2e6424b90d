-- next_scheduled: the first type after a name, and not before a prefix, that has a schedule.
CREATE OR REPLACE FUNCTION mq_internal.next_scheduled(p_after text, p_prefix text) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN (SELECT s.type FROM mq.schedule AS s WHERE s.type > p_after AND s.type >= p_prefix ORDER BY s.type, s.next_at LIMIT 1);
END
$$;
