-- spend_of_group: spend tokens from the bucket of a group.
-- Arguments:   p_type, p_group_key ('' for none), p_n (tokens), p_rate and p_seconds (the policy)
-- Transaction: joins the caller's, which has called group_tokens; a rollback returns the tokens

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_spend_of_group (
    p_type mq_name,
    p_group_key mq_name,
    p_n integer,
    p_rate integer,
    p_seconds integer
)
AS
BEGIN
    UPDATE mq_bucket SET full_at = imq_full_after(full_at, :p_rate, :p_seconds, imq_microseconds(), :p_n)
    WHERE type = :p_type AND group_key = :p_group_key;
END^

SET TERM ; ^
