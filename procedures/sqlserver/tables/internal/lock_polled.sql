-- lock_polled: lock a polling table's low-water mark; claims of the table, and changes to its settings, wait for each
--     other.
CREATE OR ALTER PROCEDURE mq_internal.lock_polled
    @name nvarchar(400)
AS
BEGIN
    DECLARE @found int = 0;
    SELECT @found = 1 FROM mq.polled_place WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @name;
    IF @found = 0
        EXEC mq_internal.raise_error 'not_found', N'name: no table is adopted as {}', @name;
END;
