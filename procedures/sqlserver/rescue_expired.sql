-- rescue_expired: expired claims back to new, or dead when their attempts are used up.
-- Arguments:   @type (NULL: all)
-- Returns:     count: messages rescued or dead-lettered; of a type at most 1,000 claims a call
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; passes over claims that are being finished or extended
-- Example:     EXEC mq.rescue_expired N'email';

CREATE OR ALTER PROCEDURE mq.rescue_expired
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    -- For as long as this call: claims pass over locked rows, which no higher level allows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @next nvarchar(400), @rescued bigint, @count bigint = 0;
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 1;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @next = @type;
        IF @type IS NULL
            SELECT TOP (1) @next = type FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) ORDER BY type;
        WHILE @next IS NOT NULL
        BEGIN
            EXEC mq.rescue @next, 1000, @rescued OUTPUT;
            SET @count = @count + @rescued;
            IF @type IS NULL
                SET @next = (
                    SELECT TOP (1) type FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type > @next ORDER BY type
                );
            ELSE
                SET @next = NULL;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS count;
END;
GO
