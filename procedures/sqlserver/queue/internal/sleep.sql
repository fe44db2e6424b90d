-- sleep: pause between two polls of a call that waits.
-- Arguments: @began (of the poll), @left (milliseconds that the call may still wait)
-- Returns: @left: less the pause
--
-- Under an old snapshot, each poll scans the deleted rows that are not cleaned up yet. The pause is ten times as long as
-- the poll took.
CREATE OR ALTER PROCEDURE mq_internal.sleep
    @began datetime2(7), @left bigint OUTPUT
AS
BEGIN
    DECLARE @pause int = DATEDIFF(MILLISECOND, @began, SYSUTCDATETIME()), @delay nvarchar(12);
    SET @pause = CASE WHEN @pause BETWEEN 5 AND 99 THEN 10 * @pause WHEN @pause >= 100 THEN 999 ELSE 50 END;
    SET @left = @left - @pause;
    -- Dynamic SQL: on a server without WAITFOR a call that does not wait still works.
    SET @delay = CONCAT(N'00:00:00.', RIGHT(CONCAT(N'00', @pause), 3));
    EXEC sp_executesql N'WAITFOR DELAY @delay', N'@delay nvarchar(12)', @delay = @delay;
END;
