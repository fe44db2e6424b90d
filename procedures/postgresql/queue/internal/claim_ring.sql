-- claim_ring: refuse a claim of a ring. The area ring replaces this.
CREATE OR REPLACE FUNCTION mq_internal.claim_ring(
    p_queue mq.queue, p_size bigint, p_consumer text, p_after_id bigint, OUT ids bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area('ring');
END
$$;
