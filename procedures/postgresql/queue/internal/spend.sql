-- spend: spend tokens from the bucket of a type.
-- Transaction: has locked the bucket (allowance); a rollback returns the tokens
CREATE OR REPLACE FUNCTION mq_internal.spend(p_queue mq.queue, p_count bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mq.limited
    SET full_at = mq_internal.full_after(full_at, clock_timestamp(), p_count, p_queue.rate, p_queue.rate_seconds)
    WHERE type = p_queue.type;
END
$$;
