-- raise_error: raise a numbered error of the contract.
CREATE OR REPLACE FUNCTION mq_internal.raise_error(p_name text, p_detail text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = p_name || ': ' || p_detail,
        ERRCODE = CASE p_name
            WHEN 'wrong_isolation' THEN '50001'
            WHEN 'invalid_argument' THEN '50002'
            WHEN 'wrong_kind' THEN '50003'
            WHEN 'queue_not_empty' THEN '50004'
            WHEN 'not_found' THEN '50005'
            WHEN 'unsuitable_table' THEN '50006'
            WHEN 'already_exists' THEN '50007'
            WHEN 'lease_lost' THEN '50008'
            WHEN 'area_missing' THEN '50009'
            WHEN 'cancelled' THEN '50011'
        END;
END
$$;
