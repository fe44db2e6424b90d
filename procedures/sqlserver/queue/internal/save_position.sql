-- save_position: refuse to save the position of a fair queue. The area ring replaces this.
CREATE OR ALTER PROCEDURE mq_internal.save_position
    @type nvarchar(400), @consumer nvarchar(400), @n bigint, @after_id bigint, @lane nvarchar(37), @taken int,
    @old_n bigint, @old_after_id bigint, @old_lane nvarchar(37)
AS
BEGIN
    EXEC mq_internal.require_area N'fair';
END;
