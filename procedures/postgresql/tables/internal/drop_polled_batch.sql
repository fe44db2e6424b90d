-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Transaction: calls for the same batch wait for each other
CREATE OR REPLACE FUNCTION mq_internal.drop_polled_batch(p_name text, p_pass text, p_batch_key uuid) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    DELETE FROM mq.polled_batch WHERE batch_key = p_batch_key AND name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN ARRAY(SELECT e.id FROM mq.polled_row AS e WHERE e.batch_key = p_batch_key AND e.name = p_name ORDER BY e.id);
END
$$;
