-- extend_lease: heartbeat: extend the lease of a batch to p_seconds from now.
-- Arguments:   p_batch_key, p_seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: messages that the batch still holds; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.extend_lease('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60);
CREATE OR REPLACE FUNCTION mq.extend_lease(p_batch_key uuid, p_seconds bigint DEFAULT NULL, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('seconds', p_seconds, 1, 86400);
    UPDATE mq.batch
    SET lease_until = clock_timestamp() + make_interval(secs => coalesce(p_seconds, lease_seconds))
    WHERE batch_key = p_batch_key
    RETURNING cardinality(ids) INTO affected;
    affected := coalesce(affected, 0);
END
$$;
