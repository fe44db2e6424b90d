-- count_held: how many messages the batches of a type hold, also expired ones: their consumers may still extend the lease.
CREATE OR ALTER FUNCTION imq_count_held (p_type mq_name)
RETURNS bigint
AS
BEGIN
    RETURN (
        SELECT COALESCE(SUM(IIF(b.id IS NULL, (SELECT COUNT(*) FROM mq_claimed AS c WHERE c.batch_key = b.batch_key), 1)), 0)
        FROM mq_batch AS b
        WHERE b.type = :p_type
        PLAN (b INDEX (mq_batch_lease))
    );
END
