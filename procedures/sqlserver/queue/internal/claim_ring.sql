-- claim_ring: refuse a claim of a ring. The area ring replaces this.
CREATE OR ALTER PROCEDURE mq_internal.claim_ring
    @type nvarchar(400), @size int, @consumer nvarchar(400), @after_id bigint, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    EXEC mq_internal.require_area N'ring';
END;
