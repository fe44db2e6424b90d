-- drop_polled_batch: end a claim, or only the claim of some entries. The transaction that does it owns these entries, which stay
--     for the caller.
-- Arguments: p_only (these entries; NULL: all)
-- Returns: the entries of the batch; NULL when the lease was lost
-- Transaction: calls for the same batch wait for each other
CREATE OR REPLACE FUNCTION mq_internal.drop_polled_batch(p_name text, p_pass text, p_batch_key uuid, p_only bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_ids bigint[];
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    PERFORM FROM mq.polled_batch WHERE batch_key = p_batch_key AND name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_ids := ARRAY(SELECT e.id FROM mq.polled_row AS e WHERE e.batch_key = p_batch_key AND e.name = p_name ORDER BY e.id);
    IF p_only IS NULL OR v_ids <@ p_only THEN
        DELETE FROM mq.polled_batch WHERE batch_key = p_batch_key;
        RETURN v_ids;
    END IF;
    RETURN ARRAY(SELECT unnest(v_ids) INTERSECT SELECT unnest(p_only) ORDER BY 1);
END
$$;
