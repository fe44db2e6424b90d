-- save_position: refuse to save the position of a fair queue. The area ring replaces this.
CREATE OR REPLACE FUNCTION mq_internal.save_position(p_place mq.ring, p_start mq.ring) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area('fair');
END
$$;
