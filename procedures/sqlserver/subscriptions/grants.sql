-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.watch_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unwatch_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.subscribe TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unsubscribe TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_subscriptions TO mq_operator, mq_viewer;
GO
-- If a watched table and the queue have different owners, the trigger runs as mq_reporter, which has no login. The trigger
-- declares a variable of type events, and every writer runs it. Dynamic: see the grants of queue.
IF SERVERPROPERTY('BabelfishVersion') IS NULL
BEGIN
    IF USER_ID(N'mq_reporter') IS NULL
        EXEC (N'CREATE USER mq_reporter WITHOUT LOGIN WITH DEFAULT_SCHEMA = mq');
    EXEC (N'GRANT EXECUTE ON OBJECT::mq_internal.send_changes TO mq_reporter');
    EXEC (N'GRANT SELECT ON OBJECT::mq.subscription TO mq_reporter');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.events TO public');
END;
