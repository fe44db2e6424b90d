-- extend_rows: extend the lease of claimed rows: it ends p_seconds from now.
-- Arguments:   p_batch_key, p_seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: rows still held; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.extend_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60);
CREATE OR REPLACE FUNCTION mq.extend_rows(
    p_batch_key uuid,
    p_seconds bigint DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('seconds', p_seconds, 1, 86400);
    affected := 0;
    UPDATE mq.polled_batch AS b
    SET lease_until = clock_timestamp() + make_interval(secs => coalesce(p_seconds, b.lease_seconds))
    WHERE b.batch_key = p_batch_key;
    IF FOUND THEN
        SELECT count(*) INTO affected FROM mq.polled_row AS e WHERE e.batch_key = p_batch_key;
    END IF;
END
$$;
