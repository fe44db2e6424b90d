-- drop_tickets: delete the tickets of messages, except tickets that another transaction has locked.
-- Arguments:   p_type, p_ids (NULL: none)
-- Transaction: joins the caller's; never waits

CREATE OR REPLACE FUNCTION mq_internal.drop_tickets(
    p_type text,
    p_ids bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows tid[] := mq_internal.lock_places(p_type, p_ids, 'infinity');
BEGIN
    DELETE FROM mq.ready WHERE ctid = ANY (v_rows);
END
$$;
