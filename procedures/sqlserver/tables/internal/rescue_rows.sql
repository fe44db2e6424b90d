-- rescue_rows: make the entries of expired leases due again.
-- Arguments: @name (of the polling table; the caller has locked its low-water mark), @now
CREATE OR ALTER PROCEDURE mq_internal.rescue_rows
    @name nvarchar(400),
    @now datetime2(7)
AS
BEGIN
    DECLARE @lost uniqueidentifier, @took int;
    DECLARE @expired TABLE (batch_key uniqueidentifier NOT NULL PRIMARY KEY);
    -- Read the keys first, without keeping locks: claims that are being finished are skipped.
    INSERT INTO @expired (batch_key)
    SELECT batch_key FROM mq.polled_batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @name AND lease_until <= @now;
    WHILE EXISTS (SELECT * FROM @expired)
    BEGIN
        SELECT TOP (1) @lost = batch_key FROM @expired;
        DELETE FROM @expired WHERE batch_key = @lost;
        DELETE FROM mq.polled_batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE batch_key = @lost AND lease_until <= @now;
        SET @took = @@ROWCOUNT;
        WHILE @took > 0
        BEGIN
            UPDATE TOP (1000) e
            SET state = 'N', batch_key = NULL, run_at = @now, error = N'lease expired'
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @lost;
            SET @took = @@ROWCOUNT;
        END;
    END;
END;
