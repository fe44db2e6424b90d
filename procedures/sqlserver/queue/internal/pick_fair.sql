-- pick_fair: refuse a claim of a fair queue. The area fair replaces this.
CREATE OR ALTER PROCEDURE mq_internal.pick_fair
    @type nvarchar(400), @size int, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    EXEC mq_internal.require_area N'fair';
END;
