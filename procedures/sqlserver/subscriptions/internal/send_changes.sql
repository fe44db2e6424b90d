-- send_changes: send one message per changed row to each subscribed type, and to each type bound to a subscribed topic.
-- Arguments: @watched_id (the table), @action (I, U or D), @events (the keys of the changed rows)
-- Transaction: the writer's; without READ_COMMITTED_SNAPSHOT it waits for a transaction that changes the subscriptions
--     of the table, the bindings of their topics or the settings of their queues
--
-- It does the same as send, for a set of messages and without the checks: an error here would end the writer's
-- transaction.
CREATE OR ALTER PROCEDURE mq_internal.send_changes
    @watched_id int, @action char(1), @events mq.events READONLY
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @source nvarchar(400) = mq_internal.consumer_name(NULL), @step int = 1000;
    DECLARE @label nvarchar(800), @head nvarchar(1000), @type nvarchar(400), @headers nvarchar(max), @grouped bit, @ring bit, @fair bit;
    DECLARE @way int = 0, @ways int, @n int, @took int;
    DECLARE @target TABLE (
        way int NOT NULL PRIMARY KEY, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL, headers nvarchar(max)
    );
    DECLARE @sent TABLE (id bigint NOT NULL PRIMARY KEY);
    SELECT @label = CONCAT(CASE WHEN table_schema <> N'dbo' THEN table_schema + N'.' END, table_name)
    FROM mq.watched WITH (READCOMMITTED)
    WHERE id = @watched_id;
    IF @label LIKE N'%["\/' + NCHAR(1) + N'-' + NCHAR(31) + N']%' COLLATE Latin1_General_100_BIN2
        SET @label = STRING_ESCAPE(@label, 'json');
    SET @head = CONCAT(N'{"table":"', @label, N'","action":"', @action, N'","key":');
    -- Subscribed types, and types bound to subscribed topics. They are ordered by name: all writers lock in the same order.
    INSERT INTO @target (way, type, headers)
    SELECT ROW_NUMBER() OVER (ORDER BY t.type, t.topic), t.type, CASE WHEN t.topic <> N'' THEN mq_internal.topic_headers(t.topic, NULL) END
    FROM (
        SELECT type, topic
        FROM mq.subscription WITH (READCOMMITTED, FORCESEEK, INDEX (subscription_pk))
        WHERE watched_id = @watched_id AND action = @action AND topic = N''
        UNION ALL
        SELECT b.type, s.topic
        FROM mq.subscription AS s WITH (READCOMMITTED, FORCESEEK, INDEX (subscription_pk))
        CROSS APPLY mq_internal.topic_types(s.topic) AS b
        WHERE s.watched_id = @watched_id AND s.action = @action AND s.topic <> N''
    ) AS t;
    SET @ways = @@ROWCOUNT;
    WHILE @way < @ways
    BEGIN
        SET @way = @way + 1;
        SELECT @type = type, @headers = headers FROM @target WHERE way = @way;
        SELECT @grouped = grouped, @ring = ring, @fair = fair, @n = 0, @took = @step FROM mq_internal.policy(@type);
        WHILE @took = @step
        BEGIN
            DELETE FROM @sent;
            -- Ids follow the order of the events: the server assigns them in the order of the SELECT.
            INSERT INTO mq.message (run_at, created_at, priority, type, body, headers, source)
            OUTPUT inserted.id INTO @sent (id)
            SELECT TOP (@step) @now, @now, 0, @type,
                CONCAT(@head, key_json, N',"old_key":' + old_key_json, N'}'), @headers, @source
            FROM @events
            WHERE n > @n
            ORDER BY n;
            SET @took = @@ROWCOUNT;
            IF @took > 0
            BEGIN
                SELECT @n = MAX(e.n) FROM (SELECT TOP (@step) n FROM @events WHERE n > @n ORDER BY n) AS e;
                IF @grouped = 1
                    INSERT INTO mq.grouped (type, group_key, id, attempts) SELECT @type, N'', id, 0 FROM @sent;
                INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
                SELECT @type, p.priority, p.lane, p.run_at, s.id, 0
                FROM mq_internal.place(@ring, @fair, @grouped, 0, NULL, @now) AS p
                CROSS JOIN @sent AS s;
            END;
        END;
    END;
END;
