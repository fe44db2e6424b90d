-- read_lanes: refuse a claim of a fair queue. The area fair replaces this.
CREATE OR REPLACE FUNCTION mq_internal.read_lanes(
    p_queue mq.queue, p_size bigint, p_take boolean, p_share boolean, p_priority text, p_place mq.ring, OUT rows tid[],
    OUT ids bigint[], OUT attempts smallint[], OUT n bigint[], OUT lanes text[], OUT served bigint[], OUT start mq.ring
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area('fair');
END
$$;
