-- next_due: when the next schedule of a type is due, or NULL.
CREATE OR REPLACE FUNCTION mq_internal.next_due(p_type text) RETURNS timestamptz
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN (SELECT s.next_at FROM mq.schedule AS s WHERE s.type = p_type ORDER BY s.type, s.next_at LIMIT 1);
END
$$;
