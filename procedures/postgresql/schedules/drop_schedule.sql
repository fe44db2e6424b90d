-- drop_schedule: delete a schedule; messages that it has sent stay.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there was none
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.drop_schedule('nightly');
CREATE OR REPLACE FUNCTION mq.drop_schedule(
    p_name text,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    DELETE FROM mq.schedule WHERE name = p_name;
    GET DIAGNOSTICS affected = ROW_COUNT;
END
$$;
