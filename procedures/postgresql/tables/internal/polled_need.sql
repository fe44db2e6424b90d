-- polled_need: return the rights on a polling table that its consumers need, as my_pass names them.
CREATE OR REPLACE FUNCTION mq_internal.polled_need(p_polled mq.polled) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE
        WHEN p_polled.status_column IS NULL THEN CASE p_polled.on_complete WHEN 'delete' THEN 'delete' ELSE 'read' END
        ELSE CASE p_polled.on_complete WHEN 'delete' THEN 'write, delete' ELSE 'write' END END;
END
$$;
