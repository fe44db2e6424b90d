-- require_actions: refuse an action that is not one or more of the letters I, U and D, each once.
CREATE OR REPLACE FUNCTION mq_internal.require_actions(p_action text, p_optional boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_action IS NULL AND p_optional OR p_action ~ '^[IUD]{1,3}$' AND p_action !~ $r$(.).*\1$r$ THEN
        RETURN;
    END IF;
    PERFORM mq_internal.raise_error('invalid_argument', 'action: must be I, U or D (insert, update, delete), or several of them');
END
$$;
