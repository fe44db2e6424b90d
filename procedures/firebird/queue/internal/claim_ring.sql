-- claim_ring: refuse a claim of a ring. The area ring replaces this.
CREATE OR ALTER PROCEDURE imq_claim_ring (
    p_type mq_name, p_size integer, p_consumer mq_name, p_after_id bigint
)
RETURNS (batch_key mq_key, n integer, id bigint, attempt smallint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_area('ring');
END
