-- hold: store picked messages as a batch with a new batch key and a lease.
CREATE OR REPLACE FUNCTION mq_internal.hold(
    p_queue mq.queue, p_ids bigint[], p_attempts smallint[], p_consumer text, p_lease_seconds bigint
) RETURNS mq.batch
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_seconds integer := coalesce(p_lease_seconds, p_queue.lease_seconds);
    v_batch mq.batch;
BEGIN
    INSERT INTO mq.batch (claimed_at, lease_until, lease_seconds, type, consumer, ids, attempts)
    VALUES (v_now, v_now + make_interval(secs => v_seconds), v_seconds, p_queue.type, p_consumer, p_ids, p_attempts)
    RETURNING * INTO v_batch;
    RETURN v_batch;
END
$$;
