-- move_ready: refuse to move rows of mq.ready. The area ring replaces this.
CREATE OR ALTER PROCEDURE mq_internal.move_ready
    @type nvarchar(400), @ring bit, @fair bit, @grouped bit
AS
BEGIN
    EXEC mq_internal.require_area N'ring';
END;
