-- write_batch: store the messages of a new batch with a lease.
-- Arguments:   p_batch_key, p_type, p_consumer, p_lease_seconds, p_id and p_attempt (the only message; NULL: the messages are
--              in mq_claimed)
-- Returns:     lease_until
CREATE OR ALTER PROCEDURE imq_write_batch (
    p_batch_key mq_key, p_type mq_name, p_consumer mq_name, p_lease_seconds integer, p_id bigint, p_attempt smallint
)
RETURNS (lease_until timestamp)
AS
DECLARE v_now timestamp;
BEGIN
    v_now = mq_utc_now();
    lease_until = DATEADD(p_lease_seconds SECOND TO v_now);
    INSERT INTO mq_batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer, id, attempt)
    VALUES (:p_batch_key, :v_now, :lease_until, :p_lease_seconds, :p_type, :p_consumer, :p_id, :p_attempt);
END
