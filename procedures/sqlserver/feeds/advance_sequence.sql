-- advance_sequence: reserve numbers of a named counter, without gaps.
-- Arguments:   @name (1 to 200 characters), @size (1 to 1,000,000,000; NULL: 1)
-- Returns:     first_number, last_number: the first and the last reserved number
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's and locks the counter until it ends; other calls wait; a rollback gives the numbers back
-- Example:     EXEC mq.advance_sequence N'invoice', 10;
CREATE OR ALTER PROCEDURE mq.advance_sequence
    @name nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @counter nvarchar(400), @value bigint;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 1000000000;
        SELECT @counter = @name, @size = COALESCE(@size, 1);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @value = last_number FROM mq.counter WITH (UPDLOCK, ROWLOCK) WHERE name = @counter;
        IF @value IS NULL
        BEGIN
            -- Of two parallel first calls, the second waits here and then finds the row. This is not a range lock: see
            -- send_message.
            EXEC mq_internal.wait_for_lock 'counter', @counter, N'';
            SELECT @value = last_number FROM mq.counter WITH (UPDLOCK, ROWLOCK) WHERE name = @counter;
            IF @value IS NULL
                INSERT INTO mq.counter (name, last_number) VALUES (@counter, 0);
        END;
        SET @value = COALESCE(@value, 0);
        UPDATE mq.counter SET last_number = @value + @size WHERE name = @counter;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @value + 1 AS first_number, @value + @size AS last_number;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
