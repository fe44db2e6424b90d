-- pick_fair: refuse a claim of a fair queue. The area fair replaces this.
CREATE OR REPLACE FUNCTION mq_internal.pick_fair(
    p_queue mq.queue, p_size bigint, OUT picked bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area('fair');
END
$$;
