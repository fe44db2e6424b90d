-- spend: spend tokens from the bucket of a type.
-- Transaction: joins the caller's, which has called allowance; a rollback returns the tokens
CREATE OR ALTER PROCEDURE imq_spend (p_type mq_name, p_n integer, p_rate integer, p_rate_seconds integer)
AS
BEGIN
    UPDATE mq_limited SET full_at = imq_full_after(full_at, :p_rate, :p_rate_seconds, imq_microseconds(), :p_n)
    WHERE type = :p_type;
    IF (ROW_COUNT = 0) THEN
        INSERT INTO mq_limited (type, full_at)
        VALUES (:p_type, imq_full_after(NULL, :p_rate, :p_rate_seconds, imq_microseconds(), :p_n));
END
