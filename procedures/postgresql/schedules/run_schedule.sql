-- run_schedule: send a schedule's message once now, in addition to its regular times.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     id: the new message
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; the schedule's regular times wait until it ends
-- Example:     SELECT mq.run_schedule('nightly');
CREATE OR REPLACE FUNCTION mq.run_schedule(
    p_name text,
    OUT id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_schedule mq.schedule;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    SELECT * INTO v_schedule FROM mq.schedule AS s WHERE s.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('not_found', format('name: there is no schedule %s', p_name));
    END IF;
    id := mq_internal.send_occurrence(v_schedule, clock_timestamp());
END
$$;
