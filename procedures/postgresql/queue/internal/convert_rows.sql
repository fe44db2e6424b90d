-- convert_rows: refuse a change of the form of rows in mq.ready. The area ring replaces this.
CREATE OR REPLACE FUNCTION mq_internal.convert_rows(p_queue mq.queue, p_size bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area(CASE WHEN p_queue.fair THEN 'fair' ELSE 'ring' END);
END
$$;
