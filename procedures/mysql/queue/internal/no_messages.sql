-- no_messages: the empty result of a claim that found nothing.
-- Returns:     no rows, with the columns of a message

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_no_messages()
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT m.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, 0 AS attempt, m.created_at, m.source,
        CAST(NULL AS char(36)) AS batch_key, CAST(NULL AS datetime(6)) AS lease_until, m.max_attempts, m.run_at,
        CAST(NULL AS char) AS extra
    FROM mq_message AS m
    WHERE FALSE;
END
