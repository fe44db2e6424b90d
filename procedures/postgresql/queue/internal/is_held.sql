-- is_held: whether an open transaction holds one of these active messages; if not, none can until the caller's transaction ends.
CREATE OR REPLACE FUNCTION mq_internal.is_held(p_ids bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_free bigint;
BEGIN
    SELECT count(*) INTO v_free FROM (SELECT FROM mq.message WHERE id = ANY (p_ids) FOR UPDATE SKIP LOCKED) AS m;
    RETURN v_free < cardinality(p_ids);
END
$$;
