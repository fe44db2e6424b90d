-- drop_tickets: delete the tickets of messages, except tickets that another transaction has locked.
-- Arguments:   p_type, p_ids (NULL: none)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; never waits
-- Example:     SELECT mq.drop_tickets('invoice', ARRAY[17]);

CREATE OR REPLACE FUNCTION mq.drop_tickets(
    p_type text,
    p_ids bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows tid[] := mq.lock_places(p_type, p_ids, 'infinity');
BEGIN
    DELETE FROM mq.ready WHERE ctid = ANY (v_rows);
END
$$;
