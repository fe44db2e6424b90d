-- wait_for_lock: take the application lock of a pair of names.
-- Arguments: @kind, @first, @second (as for lock_name)
-- Transaction: the caller has one open; waits for others that hold the lock, as long as LOCK_TIMEOUT says, and keeps it until the
--     end
CREATE OR ALTER PROCEDURE mq_internal.wait_for_lock
    @kind varchar(20), @first nvarchar(400), @second nvarchar(400)
AS
BEGIN
    DECLARE @resource nvarchar(255) = mq_internal.lock_name(@kind, @first, @second), @got int, @longest int = @@LOCK_TIMEOUT;
    EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = @longest;
    -- As the victim of a deadlock, the wait ends without the lock and without an error. No procedure can raise 1205.
    IF @got < 0
    BEGIN
        DECLARE @message nvarchar(200) = CONCAT(N'deadlock: the lock ', @resource, N' was not granted (', @got,
            N'); run the transaction again');
        THROW 51205, @message, 1;
    END;
END;
