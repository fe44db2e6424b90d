-- no_messages: the empty result of a claim that found nothing.
-- Returns:     no rows, with the columns of a message
-- Transaction: reads nothing

CREATE OR ALTER PROCEDURE mq_internal.no_messages
AS
BEGIN
    SELECT id, type, body, headers, CAST(priority AS int) AS priority, group_key, dedup_key, CAST(NULL AS int) AS attempt,
        created_at, source, CAST(NULL AS uniqueidentifier) AS batch_key, CAST(NULL AS datetime2(7)) AS lease_until
    FROM mq.message
    WHERE 1 = 0;
END;
GO
