-- next_due: when the next message of the schedules of a type is due; NULL: never.
CREATE OR ALTER FUNCTION mq_internal.next_due (@type nvarchar(400))
RETURNS datetime2(7)
AS
BEGIN
    RETURN (
        SELECT MIN(next_at) FROM mq.schedule WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND next_at IS NOT NULL
    );
END;
