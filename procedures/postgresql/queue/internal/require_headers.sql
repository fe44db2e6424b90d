-- require_headers: refuse headers that are not a JSON object with unique names, from its { to its }.
CREATE OR REPLACE FUNCTION mq_internal.require_headers(p_headers text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_fits boolean := p_headers IS NULL;
BEGIN
    -- PostgreSQL 15 has no IS JSON OBJECT WITH UNIQUE KEYS.
    IF left(p_headers, 1) = '{' AND right(p_headers, 1) = '}' THEN
        BEGIN
            SELECT count(*) = count(DISTINCT k.name COLLATE "C") INTO v_fits FROM json_object_keys(p_headers::json) AS k (name);
        EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
            v_fits := false;
        END;
    END IF;
    IF NOT v_fits THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    END IF;
END
$$;
