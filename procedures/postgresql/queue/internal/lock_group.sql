-- lock_group: keep other claims out of a group until this transaction ends.
-- Returns: false when another transaction has locked the group, or a group that shares its stripe
-- Transaction: never waits
--
-- The lock is a row lock, not an advisory lock: any role that can connect could hold an advisory lock and block the group,
-- and each takes an entry of the server's lock table.
CREATE OR REPLACE FUNCTION mq_internal.lock_group(p_type text, p_group text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mq.stripe
    WHERE n = hashtext(p_type || E'\n' || p_group) & 16383
    FOR NO KEY UPDATE SKIP LOCKED;
    RETURN FOUND;
END
$$;
