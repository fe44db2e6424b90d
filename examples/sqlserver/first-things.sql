-- first-things.sql: what only a real SQL Server can show about rowqueue.
--
-- Install the queue in a new database, then run this file as a member of db_owner, twice: with READ_COMMITTED_SNAPSHOT off
-- and on. On Azure SQL and on 2025, run it with OPTIMIZED_LOCKING on too.
--
--   sqlcmd -S localhost -d shop -Q "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE"
--   sqlcmd -S localhost -d shop -f 65001 -i first-things.sql -o first-things-off.txt
--
-- Without -b, because the file continues after an error. Each result names its check and what is expected. Whatever differs
-- is worth a report: an error, a row where none is expected, a line "Warning: Null value is eliminated". The file makes
-- queues, tables and a user whose names begin with ft. Then follow two-windows.sql.
SET NOCOUNT, QUOTED_IDENTIFIER ON;
GO
SELECT N'0' AS [check], @@VERSION AS version, DATABASEPROPERTYEX(DB_NAME(), 'Collation') AS collation,
    DATABASEPROPERTYEX(DB_NAME(), 'IsOptimizedLockingOn') AS optimized_locking, is_read_committed_snapshot_on AS row_versions,
    compatibility_level AS level
FROM sys.databases
WHERE name = DB_NAME();
GO
-- 1. The hints of claims in one statement, on a table that is read and on one that is changed. No error 1047 (hints that
--    exclude each other), 1069, 8622 (no plan) or 308 (no such index).
SELECT TOP (1) N'1' AS [check], N'no row, no error' AS expected
FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
WHERE type = N'ft-none';
UPDATE TOP (10) e
SET hit = 0
FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
WHERE e.batch_key = NEWID();
DELETE TOP (10) f
FROM mq.group_freed AS f WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
WHERE f.type = N'ft-none' AND f.group_key = N'';
GO
-- 2. An ordered queue: an INSERT that reads its own target with READUNCOMMITTED (no error 1065), and a claim inside
--    INSERT ... EXEC.
EXEC mq.set_queue N'ft-ordered', N'{"ordered": 1}';
EXEC mq.send_message N'ft-ordered', N'a', @group_key = N'g';
EXEC mq.send_message N'ft-ordered', N'b', @group_key = N'g';
GO
DECLARE @m TABLE (
    id bigint, type nvarchar(400), body nvarchar(max), headers nvarchar(max), priority int, group_key nvarchar(400),
    dedup_key nvarchar(400), attempt int, created_at datetime2(7), source nvarchar(400), batch_key uniqueidentifier,
    lease_until datetime2(7), max_attempts int, run_at datetime2(7), extra nvarchar(max)
);
INSERT INTO @m EXEC mq.claim_batch N'ft-ordered', 10;
SELECT N'2 a claim in INSERT ... EXEC' AS [check], N'a' AS expected, (SELECT MIN(body) FROM @m) AS found, COUNT(*) AS [rows] FROM @m;
DECLARE @key nvarchar(36) = (SELECT TOP (1) batch_key FROM @m);
DELETE FROM @m;
INSERT INTO @m EXEC mq.finish_batch @key, NULL, 10;
SELECT N'2 the next of the group' AS [check], N'b' AS expected, (SELECT MIN(body) FROM @m) AS found, COUNT(*) AS [rows] FROM @m;
GO
-- 3. The error of a call in INSERT ... EXEC: 50002, not 3915 or 3916.
DECLARE @n TABLE (affected bigint);
BEGIN TRY
    INSERT INTO @n EXEC mq.complete_batch N'no key';
END TRY
BEGIN CATCH
    SELECT N'3' AS [check], 50002 AS expected, ERROR_NUMBER() AS found, XACT_STATE() AS state;
END CATCH;
IF @@TRANCOUNT > 0
    ROLLBACK TRANSACTION;
GO
-- 4. Nothing is bad in a fresh installation.
DECLARE @h TABLE (name varchar(60), verdict varchar(4), value float, unit varchar(20), detail nvarchar(max));
INSERT INTO @h EXEC mq.queue_health;
SELECT N'4' AS [check], 0 AS expected, (SELECT COUNT(*) FROM @h WHERE verdict = 'bad') AS found;
SELECT N'4 for information' AS [check], name, verdict, value, unit, detail FROM @h WHERE verdict <> 'ok';
GO
-- 5. Keys within their limits: 900 bytes in a clustered index, 1,700 in another. No row.
SELECT N'5' AS [check], N'no row' AS expected, OBJECT_NAME(i.object_id) AS [table], i.name, i.type_desc, SUM(c.max_length) AS bytes
FROM sys.indexes AS i
INNER JOIN sys.tables AS t ON t.object_id = i.object_id AND t.schema_id = SCHEMA_ID(N'mq')
INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0
INNER JOIN sys.columns AS c ON c.object_id = x.object_id AND c.column_id = x.column_id
GROUP BY i.object_id, i.name, i.type_desc, i.index_id
HAVING SUM(c.max_length) > CASE i.index_id WHEN 1 THEN 900 ELSE 1700 END;
GO
-- 6. The longest names: a group of 200 emoji in a queue of 200 characters, with limits per group. One row, no error 1946.
DECLARE @wide nvarchar(400) = REPLICATE(CAST(0x3DD800DE AS nvarchar(2)), 200), @type nvarchar(400) = N'ft-' + REPLICATE(N't', 197);
EXEC mq.set_queue @type, '{"group_max_active": 1, "group_rate": 10}';
EXEC mq.send_message @type, N'6 the longest names', @group_key = @wide;
DECLARE @m TABLE (
    id bigint, type nvarchar(400), body nvarchar(max), headers nvarchar(max), priority int, group_key nvarchar(400),
    dedup_key nvarchar(400), attempt int, created_at datetime2(7), source nvarchar(400), batch_key uniqueidentifier,
    lease_until datetime2(7), max_attempts int, run_at datetime2(7), extra nvarchar(max)
);
INSERT INTO @m EXEC mq.claim_batch @type, 1;
DECLARE @key nvarchar(36) = (SELECT TOP (1) batch_key FROM @m);
EXEC mq.complete_batch @key;
SELECT N'6' AS [check], 1 AS expected, COUNT(*) AS found FROM @m;
GO
-- 7. Work for the plans of check 15: something of everything.
EXEC mq.set_queue N'ft', N'{"max_attempts": 3}';
DECLARE @bodies nvarchar(max) = REPLICATE(CAST(N'x' + NCHAR(10) AS nvarchar(max)), 10000);
EXEC mq.send_batch N'ft', @bodies;
EXEC mq.send_batch N'ft', @bodies;
EXEC mq.set_queue N'ft-limits', N'{"max_active": 5, "rate": 100, "group_max_active": 2, "group_rate": 50}';
DECLARE @i int = 0, @group nvarchar(10);
DECLARE @sent TABLE (id bigint, created smallint, changed smallint, state char(1));
WHILE @i < 200
BEGIN
    SELECT @i = @i + 1, @group = CONCAT(N'g', @i % 20);
    INSERT INTO @sent EXEC mq.send_message N'ft-limits', N'x', @group_key = @group;
END;
EXEC mq.bind_topic N'ft.*', N'ft-topic';
EXEC mq.publish N'ft.a', N'x';
EXEC mq.set_schedule N'ft-nightly', N'ft-topic', N'30 2 * * *', N'x';
EXEC mq.report_consumer N'ft-consumer', N'ft', N'{"completed": 1}';
CREATE TABLE dbo.ft_orders (id int NOT NULL PRIMARY KEY, status char(1) NOT NULL, sync bigint NULL, paid datetime2 NULL);
CREATE INDEX ft_orders_claim ON dbo.ft_orders (status, id);
CREATE INDEX ft_orders_sync ON dbo.ft_orders (sync);
INSERT INTO dbo.ft_orders (id, status)
SELECT TOP (300) ROW_NUMBER() OVER (ORDER BY a.object_id, a.column_id), 'N' FROM sys.all_columns AS a;
EXEC mq.adopt_table N'ft-orders', N'ft_orders', N'{"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A", "done_value": "D", "error_value": "E"}';
EXEC mq.create_feed N'ft-feed', N'ft_orders', N'id', N'sync';
EXEC mq.watch_table N'ft_orders';
EXEC mq.subscribe N'ft_orders', N'IUD', N'ft-changes';
UPDATE dbo.ft_orders SET paid = SYSUTCDATETIME() WHERE id <= 3;
GO
-- 8. A claim locks rows and no pages. Resource PAGE and OBJECT: only IX, IU and IS. KEY: X or U.
BEGIN TRANSACTION;
DECLARE @m TABLE (
    id bigint, type nvarchar(400), body nvarchar(max), headers nvarchar(max), priority int, group_key nvarchar(400),
    dedup_key nvarchar(400), attempt int, created_at datetime2(7), source nvarchar(400), batch_key uniqueidentifier,
    lease_until datetime2(7), max_attempts int, run_at datetime2(7), extra nvarchar(max)
);
INSERT INTO @m EXEC mq.claim_batch N'ft', 500;
SELECT N'8' AS [check], N'PAGE, OBJECT: IX, IU, IS' AS expected, resource_type, request_mode, COUNT(*) AS locks
FROM sys.dm_tran_locks
WHERE request_session_id = @@SPID AND resource_database_id = DB_ID()
GROUP BY resource_type, request_mode;
ROLLBACK TRANSACTION;
GO
-- 9. Reading calls in a SERIALIZABLE transaction keep no ranges locked. No row.
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
BEGIN TRANSACTION;
EXEC mq.get_result 1;
EXEC mq.list_schedules;
EXEC mq.list_bindings;
EXEC mq.list_subscriptions;
EXEC mq_internal.installed_files;
EXEC mq.find_messages N'ft', N'{"group_key": "none"}';
SELECT N'9' AS [check], N'no row' AS expected, resource_type, request_mode, COUNT(*) AS locks
FROM sys.dm_tran_locks
WHERE request_session_id = @@SPID AND resource_database_id = DB_ID() AND request_mode LIKE N'Range%'
GROUP BY resource_type, request_mode;
ROLLBACK TRANSACTION;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
GO
-- 10. A transaction at SNAPSHOT that reads first, then calls. No error 650, 3951 or 3960.
ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON;
GO
SET TRANSACTION ISOLATION LEVEL SNAPSHOT;
BEGIN TRANSACTION;
SELECT N'10' AS [check], N'no error' AS expected, COUNT(*) AS queues FROM mq.queue;
EXEC mq.claim_batch N'ft', 1;
EXEC mq.send_message N'ft', N'x', @dedup_key = N'ft-d', @on_conflict = N'replace';
EXEC mq.send_message N'ft', N'y', @dedup_key = N'ft-d', @on_conflict = N'replace';
SELECT N'10' AS [check], N'no error' AS expected, COUNT(*) AS queues FROM mq.queue;
ROLLBACK TRANSACTION;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
GO
-- 11. IMPLICIT_TRANSACTIONS: the call works in the transaction that it opens, and the caller ends it. No error 266.
SET IMPLICIT_TRANSACTIONS ON;
EXEC mq.send N'ft', N'x';
SELECT N'11' AS [check], 1 AS expected, @@TRANCOUNT AS found;
ROLLBACK TRANSACTION;
SET IMPLICIT_TRANSACTIONS OFF;
GO
-- 12. A failure in finish_batch, then the next batch: one result with rows, and no warning 8153.
DECLARE @m TABLE (
    id bigint, type nvarchar(400), body nvarchar(max), headers nvarchar(max), priority int, group_key nvarchar(400),
    dedup_key nvarchar(400), attempt int, created_at datetime2(7), source nvarchar(400), batch_key uniqueidentifier,
    lease_until datetime2(7), max_attempts int, run_at datetime2(7), extra nvarchar(max)
);
INSERT INTO @m EXEC mq.claim_batch N'ft', 10;
DECLARE @key nvarchar(36), @outcomes nvarchar(200);
SELECT TOP (1) @key = batch_key, @outcomes = CONCAT(N'{"id":', id, N',"error":"busy","retry_after_seconds":60}')
FROM @m ORDER BY id;
DELETE FROM @m;
INSERT INTO @m EXEC mq.finish_batch @key, @outcomes, 10;
SELECT N'12' AS [check], 10 AS expected, COUNT(*) AS found FROM @m;
GO
-- 13. A session whose settings a filtered index does not allow: error 1934 for the call, and no dead rows.
CREATE INDEX ft_orders_unpaid ON dbo.ft_orders (paid) WHERE paid IS NULL;
GO
DECLARE @r TABLE (id bigint, [key] nvarchar(max), [row] nvarchar(max), attempt int, batch_key uniqueidentifier, lease_until datetime2(7));
INSERT INTO @r EXEC mq.claim_rows N'ft-orders', 10;
DECLARE @key nvarchar(36) = (SELECT TOP (1) batch_key FROM @r);
SET ANSI_WARNINGS OFF;
BEGIN TRY
    EXEC mq.finish_rows @key;
END TRY
BEGIN CATCH
    SELECT N'13' AS [check], 1934 AS expected, ERROR_NUMBER() AS found;
END CATCH;
IF @@TRANCOUNT > 0
    ROLLBACK TRANSACTION;
SET ANSI_WARNINGS ON;
EXEC mq.finish_rows @key;
SELECT N'13' AS [check], 0 AS expected, COUNT(*) AS found FROM mq.polled_row WHERE name = N'ft-orders' AND state = 'E';
GO
DROP INDEX ft_orders_unpaid ON dbo.ft_orders;
GO
-- 14. The roles are enough for their calls. No error 229.
CREATE USER ft_user WITHOUT LOGIN;
ALTER ROLE mq_producer ADD MEMBER ft_user;
GO
EXECUTE AS USER = N'ft_user';
EXEC mq.send_message N'ft', N'x', @dedup_key = N'ft-d2', @on_conflict = N'replace';
EXEC mq.send_message N'ft', N'y', @dedup_key = N'ft-d2', @on_conflict = N'replace';
REVERT;
GO
-- After an error the batch may have ended before REVERT.
WHILE USER_NAME() = N'ft_user'
    REVERT;
ALTER ROLE mq_producer DROP MEMBER ft_user;
ALTER ROLE mq_consumer ADD MEMBER ft_user;
GO
EXECUTE AS USER = N'ft_user';
EXEC mq.claim_batch N'ft', 1;
EXEC mq.take_batch N'ft', 1;
EXEC mq.claim_any N'ft', 1;
EXEC mq.wait_for_any N'ft', 0;
BEGIN TRY
    EXEC mq.claim_rows N'ft-orders', 1;
END TRY
BEGIN CATCH
    SELECT N'14 without rights on the table' AS [check], 50006 AS expected, ERROR_NUMBER() AS found, ERROR_MESSAGE() AS message;
END CATCH;
IF @@TRANCOUNT > 0
    ROLLBACK TRANSACTION;
REVERT;
GO
-- A watched table whose owner is another user: its trigger runs as mq_reporter.
WHILE USER_NAME() = N'ft_user'
    REVERT;
CREATE TABLE dbo.ft_theirs (id int NOT NULL PRIMARY KEY, name nvarchar(20));
ALTER AUTHORIZATION ON OBJECT::dbo.ft_theirs TO ft_user;
EXEC mq.watch_table N'ft_theirs';
EXEC mq.subscribe N'ft_theirs', N'IUD', N'ft-theirs';
GO
EXECUTE AS USER = N'ft_user';
SET TEXTSIZE 10;
INSERT INTO dbo.ft_theirs (id, name) VALUES (1, N'a'), (2, N'b');
MERGE dbo.ft_theirs AS t
USING (VALUES (1, N'c'), (3, N'd')) AS s (id, name) ON s.id = t.id
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
WHEN NOT MATCHED BY SOURCE THEN DELETE;
SET TEXTSIZE 2147483647;
REVERT;
GO
WHILE USER_NAME() = N'ft_user'
    REVERT;
SELECT N'14 one message per row' AS [check], 5 AS expected, COUNT(*) AS found FROM mq.message WHERE type = N'ft-theirs';
GO
-- 15. Scans in the plans of the queue, after one call of everything. Expected: none of queue, batch, claimed, polled_row,
--     feed_consumer, consumer, report, schedule, binding, subscription, bucket, group_freed, group_lock, grouped, message,
--     except of the calls that list everything: list_..., list_feeds, throughput, forget_reports, queue_health; and of
--     release_consumer: batch.
EXEC mq.claim_batch N'ft-limits', 10;
EXEC mq.wait_for_message N'ft-limits', 0;
DECLARE @types nvarchar(max) = N'ft-none' + NCHAR(10) + N'ft-limits' + NCHAR(10) + N'ft', @new bigint;
EXEC mq.wait_for_any @types, 0;
EXEC mq.claim_any @types, 10, N'ft-any';
EXEC mq.release_consumer N'ft-any';
SELECT @new = MIN(id) FROM mq.ready WHERE type = N'ft';
EXEC mq.update_message @new, N'{"priority": 1, "delay_seconds": 60}';
EXEC mq.rescue_expired;
EXEC mq.queue_stats;
EXEC mq.list_errors N'ft';
EXEC mq.publish_feed N'ft-feed', 100;
EXEC mq.fetch_feed N'ft-feed', N'ft-c1', 10;
EXEC mq.advance_feed N'ft-feed', N'ft-c1', 5;
EXEC mq.advance_feed N'ft-feed', N'ft-c1', 6;
EXEC mq.claim_rows N'ft-orders', 10;
EXEC mq.set_queue N'ft-ring', N'{"ring": 1}';
EXEC mq.claim_wraparound N'ft-ring', 5;
EXEC mq.set_queue N'ft-fair', N'{"fair": 1}';
EXEC mq.claim_batch N'ft-fair', 5;
EXEC mq.set_option N'ft-ordered', N'dead_stops_group', N'1';
EXEC mq.set_option N'ft-ordered', N'dead_stops_group', N'0';
EXEC mq.list_polling_tables;
GO
WITH XMLNAMESPACES (DEFAULT 'http://schemas.microsoft.com/sqlserver/2004/07/showplan')
SELECT N'15' AS [check], OBJECT_NAME(p.objectid, p.dbid) AS module, r.value('@PhysicalOp', 'nvarchar(60)') AS operation,
    o.value('@Table', 'nvarchar(200)') AS [table], o.value('@Index', 'nvarchar(200)') AS [index],
    LEFT(s.value('@StatementText', 'nvarchar(max)'), 150) AS statement
FROM sys.dm_exec_cached_plans AS c
CROSS APPLY sys.dm_exec_query_plan(c.plan_handle) AS p
CROSS APPLY p.query_plan.nodes('//StmtSimple') AS a (s)
CROSS APPLY a.s.nodes('.//RelOp[@PhysicalOp="Clustered Index Scan" or @PhysicalOp="Index Scan" or @PhysicalOp="Table Scan"]') AS b (r)
CROSS APPLY b.r.nodes('./*/Object') AS d (o)
WHERE p.dbid = DB_ID() AND o.value('@Schema', 'nvarchar(200)') = N'[mq]'
ORDER BY 2, 4;
GO
-- 16. For information: the functions that the server writes into the statements that call them (from 2019 on). Their hints
--     and waits then belong to those statements.
IF COL_LENGTH(N'sys.sql_modules', N'is_inlineable') IS NOT NULL
    EXEC (N'SELECT N''16'' AS [check], OBJECT_NAME(object_id) AS name FROM sys.sql_modules
WHERE OBJECT_SCHEMA_NAME(object_id) = N''mq'' AND is_inlineable = 1 ORDER BY name;');
GO
-- 17. Every time zone that the server knows, and one name in other letters, which only the server's collation decides.
DECLARE @zone nvarchar(128) = N'', @bad int = 0;
WHILE @zone IS NOT NULL
BEGIN
    SET @zone = (SELECT MIN(name) FROM sys.time_zone_info WHERE name > @zone);
    BEGIN TRY
        IF @zone IS NOT NULL
            EXEC mq.next_occurrence N'30 2 * * *', '2026-03-28', @zone;
    END TRY
    BEGIN CATCH
        SELECT N'17' AS [check], @zone AS zone, ERROR_NUMBER() AS number, ERROR_MESSAGE() AS message;
        SET @bad += 1;
    END CATCH;
END;
SELECT N'17' AS [check], 0 AS expected, @bad AS found;
BEGIN TRY
    EXEC mq.next_occurrence N'30 2 * * *', '2026-03-28', N'romance standard time';
END TRY
BEGIN CATCH
    SELECT N'17 for information: other letters' AS [check], ERROR_NUMBER() AS number, ERROR_MESSAGE() AS message;
END CATCH;
GO
