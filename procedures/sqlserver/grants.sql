-- grants: which role may call which procedure and read which view. Procedures and views have the tables' owner.
-- Arguments:   none; run after every change of a procedure
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     ALTER ROLE mq_producer ADD MEMBER shop;

IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_producer')
    CREATE ROLE mq_producer;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_consumer')
    CREATE ROLE mq_consumer;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_operator')
    CREATE ROLE mq_operator;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_viewer')
    CREATE ROLE mq_viewer;

-- First revoke all rights of public, guest and the four roles in the schema, including those granted by hand. Other
-- users and roles keep their rights.
DECLARE @revoke nvarchar(max), @n int = 0;
DECLARE @wrong TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, statement nvarchar(1000) NOT NULL);
INSERT INTO @wrong (statement)
SELECT CONCAT(N'REVOKE ', p.permission_name, N' ON OBJECT::', QUOTENAME(SCHEMA_NAME(o.schema_id)), N'.', QUOTENAME(o.name), N' FROM ', QUOTENAME(g.name), N' CASCADE')
FROM sys.database_permissions AS p
INNER JOIN sys.objects AS o ON o.object_id = p.major_id AND o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 1 AND p.minor_id = 0 AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator')
UNION
SELECT CONCAT(N'REVOKE ', p.permission_name, N' ON SCHEMA::', SCHEMA_NAME(p.major_id), N' FROM ', QUOTENAME(g.name), N' CASCADE')
FROM sys.database_permissions AS p
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 3 AND p.major_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal')) AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer');
WHILE @n IS NOT NULL
BEGIN
    SET @n = (SELECT MIN(n) FROM @wrong WHERE n > @n);
    SELECT @revoke = statement FROM @wrong WHERE n = @n;
    IF @n IS NOT NULL
        EXEC sp_executesql @revoke;
END;

GRANT EXECUTE ON OBJECT::mq.send TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.send_message TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.send_batch TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.get_message TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.claim_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.claim_wraparound TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.take_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.complete TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.complete_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.fail TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.finish_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.release_batch TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.extend_lease TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.rescue_expired TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.wait_for_message TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.cancel TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.redrive TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.purge TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.purge_archive TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.set_queue TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.pause TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.resume TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.queue_stats TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.installed_files TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.queue_health TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.peek TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_queues TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.find_messages TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_errors TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.watch_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unwatch_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.subscribe TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unsubscribe TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_subscriptions TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.advance_sequence TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.set_result TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.get_result TO mq_operator, mq_consumer, mq_producer;
GRANT EXECUTE ON OBJECT::mq.bind_topic TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unbind_topic TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_bindings TO mq_operator, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.publish TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.set_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.drop_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_schedules TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.run_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.next_occurrence TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.create_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.drop_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.publish_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.fetch_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.advance_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.rewind_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.feed_stats TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.adopt_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.release_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.claim_rows TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.finish_rows TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.extend_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.release_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.retry_rows TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.peek_rows TO mq_operator, mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_tables TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.report_consumer TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_consumers TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.throughput TO mq_operator, mq_consumer, mq_viewer;
-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
GRANT SELECT ON OBJECT::mq.message_state TO mq_operator;
GRANT SELECT ON OBJECT::mq.message_overview TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.message TO mq_operator;
GRANT SELECT ON OBJECT::mq.ready TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.delayed TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.batch TO mq_operator;
GRANT SELECT ON OBJECT::mq.dead TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.grouped TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.group_lock TO mq_operator;
GRANT SELECT ON OBJECT::mq.archive TO mq_operator;
GRANT SELECT ON OBJECT::mq.mark TO mq_operator;
GRANT SELECT ON OBJECT::mq.queue TO mq_operator;
GRANT SELECT ON OBJECT::mq.polled_batch TO mq_operator;
GRANT SELECT ON OBJECT::mq.polled_row TO mq_operator;
GRANT SELECT ON OBJECT::mq.claimed TO mq_operator;
GO
-- mq.installed_files and mq.queue_health compare the text of the procedures; this right shows no row of a table.
GRANT VIEW DEFINITION ON SCHEMA::mq TO mq_producer, mq_consumer, mq_operator, mq_viewer;
GRANT VIEW DEFINITION ON SCHEMA::mq_internal TO mq_producer, mq_consumer, mq_operator, mq_viewer;
GO
-- To call a procedure that declares a variable of one of these types, a user needs a right on the type, which gives no
-- access to data. If a watched table and the queue have different owners, the trigger runs as mq_reporter, which has no
-- login. The statements are dynamic, because Babelfish cannot parse them; it does not need these rights.
IF SERVERPROPERTY('BabelfishVersion') IS NULL
BEGIN
    IF USER_ID(N'mq_reporter') IS NULL
        EXEC (N'CREATE USER mq_reporter WITHOUT LOGIN WITH DEFAULT_SCHEMA = mq');
    EXEC (N'GRANT EXECUTE ON OBJECT::mq_internal.send_changes TO mq_reporter');
    EXEC (N'GRANT SELECT ON OBJECT::mq.subscription TO mq_reporter');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.items TO mq_producer, mq_consumer, mq_operator');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.pieces TO mq_consumer, mq_operator, mq_viewer');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.places TO mq_producer, mq_consumer, mq_operator');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.failures TO mq_consumer, mq_operator');
    -- The trigger of a watched table declares a variable of this type, and every writer runs the trigger.
    EXEC (N'GRANT EXECUTE ON TYPE::mq.events TO public');
END;
GO
