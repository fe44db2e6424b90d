-- is_active: whether a batch of a type holds a message: one or two index entries per batch of the type.
CREATE OR ALTER FUNCTION imq_is_active (p_type mq_name, p_id bigint)
RETURNS smallint
AS
BEGIN
    RETURN IIF(EXISTS (
        SELECT *
        FROM mq_batch AS b
        WHERE b.type = :p_type AND (b.id = :p_id
            OR EXISTS (SELECT * FROM mq_claimed AS c WHERE c.batch_key = b.batch_key AND c.id = :p_id))
        PLAN (b INDEX (mq_batch_lease))
    ), 1, 0);
END
