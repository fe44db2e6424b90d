-- lower_mark: what was put back lies below the low-water mark: let the next claim look from the very start.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.lower_mark('email');

CREATE OR REPLACE FUNCTION mq.lower_mark(
    p_type text
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_n bigint;
BEGIN
    SELECT n INTO v_n FROM mq.mark WHERE type = p_type ORDER BY type, n DESC LIMIT 1;
    IF FOUND THEN
        INSERT INTO mq.mark (n, looked_at, promoted_to, type, priorities, run_ats, ids)
        -- Two higher, so that it also counts over the mark that a claim at work at this moment will leave.
        VALUES (v_n + 2, '-infinity', '-infinity', p_type, '{}', '{}', '{}');
    END IF;
END
$$;
