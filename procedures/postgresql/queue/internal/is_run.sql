-- is_run: whether each id of a batch is the one before it plus 1: then one scan of an index range returns the messages.
CREATE OR REPLACE FUNCTION mq_internal.is_run(p_ids bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- The ends of most other lists differ from a run, and comparing them costs nothing.
    IF p_ids[cardinality(p_ids)] - p_ids[1] <> cardinality(p_ids) - 1 THEN
        RETURN false;
    END IF;
    RETURN p_ids = ARRAY(SELECT generate_series(p_ids[1], p_ids[cardinality(p_ids)]));
END
$$;
