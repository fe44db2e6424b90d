-- queue_health: check the database for problems that slow queues down or endanger messages.
-- Arguments:   none
-- Returns:     one row per check: name, verdict (ok, warn or bad), measured (what was measured; NULL: the caller may not see
--              it), unit, detail (what is wrong, and what to do)
-- Errors:      none
-- Transaction: reads only; sees other sessions when the caller's login has VIEW SERVER STATE (on Azure SQL: the caller VIEW
--              DATABASE STATE)
-- Example:     EXEC mq.queue_health;
CREATE OR ALTER PROCEDURE mq.queue_health
AS
BEGIN
    SET NOCOUNT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- A missing right must not end the caller's transaction: the row of the check reports it. Nothing is changed here.
    SET XACT_ABORT OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @value float, @verdict varchar(4), @detail nvarchar(max), @sees bit = 0;
    DECLARE @right nvarchar(200), @seconds bigint, @level int, @versions bit, @snapshots bit, @delayed_durability int;
    DECLARE @name nvarchar(400), @failed nvarchar(max), @round int, @id bigint;
    DECLARE @checks TABLE (
        n int NOT NULL PRIMARY KEY, name varchar(60) NOT NULL, verdict varchar(4) NOT NULL, value float,
        unit varchar(20) NOT NULL, detail nvarchar(max) NOT NULL
    );
    DECLARE @stuck TABLE (
        round int NOT NULL, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL
    );
    DECLARE @wrong TABLE (n int NOT NULL, name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL, PRIMARY KEY (n, name));

    BEGIN TRY
        -- 5: Azure SQL Database, where the right belongs to the database.
        IF CAST(SERVERPROPERTY('EngineEdition') AS int) = 5
        BEGIN
            SET @right = CONCAT(N'GRANT VIEW DATABASE STATE TO ', QUOTENAME(USER_NAME()));
            SET @sees = COALESCE(HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE STATE'), 0);
        END
        ELSE
        BEGIN
            SET @right = CONCAT(N'GRANT VIEW SERVER STATE TO ', QUOTENAME(SUSER_SNAME()));
            SET @sees = COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'), 0);
        END;
    END TRY
    BEGIN CATCH
        SET @sees = 0;
    END CATCH;
    SET @right = CONCAT(N'not visible to the caller: ', @right);

    -- While an old transaction is open, deleted rows stay in the version store and the log cannot be truncated.
    SELECT @value = NULL, @verdict = 'warn', @detail = @right;
    BEGIN TRY
        IF OBJECT_ID(N'sys.dm_tran_active_transactions') IS NULL
            SET @detail = N'this server does not report it';
        ELSE IF @sees = 1
        BEGIN
            SELECT @value = 0, @detail = N'no other transaction is open';
            -- In the time zone of the server's machine.
            SELECT TOP (1) @value = DATEDIFF_BIG(MILLISECOND, t.transaction_begin_time, GETDATE()) / 1e3,
                @detail = CASE
                    WHEN s.session_id IS NULL THEN CONCAT(N'a distributed transaction without a session; to end it: KILL ''',
                        t.transaction_uow, N'''')
                    ELSE CONCAT(N'session ', s.session_id, N', login ', e.login_name, N', host ', e.host_name, N', program ',
                        e.program_name, N', ', e.status,
                        N'; while it is open, deleted rows are not cleaned up; to end it: KILL ', s.session_id)
                END
            FROM sys.dm_tran_active_transactions AS t
            LEFT JOIN sys.dm_tran_session_transactions AS s ON s.transaction_id = t.transaction_id
            LEFT JOIN sys.dm_exec_sessions AS e ON e.session_id = s.session_id
            WHERE (s.session_id <> @@SPID AND s.is_user_transaction = 1 OR s.session_id IS NULL AND t.transaction_type = 4)
                AND (e.database_id = DB_ID() OR EXISTS (
                    SELECT * FROM sys.dm_tran_database_transactions AS d
                    WHERE d.transaction_id = t.transaction_id AND d.database_id = DB_ID()
                ))
            ORDER BY t.transaction_begin_time;
            SET @value = CASE WHEN @value < 0 THEN 0 ELSE @value END;
            SET @verdict = CASE WHEN @value > 3600 THEN 'bad' WHEN @value > 300 THEN 'warn' ELSE 'ok' END;
        END;
    END TRY
    BEGIN CATCH
        SELECT @value = NULL, @verdict = 'warn', @detail = ERROR_MESSAGE();
    END CATCH;
    INSERT INTO @checks VALUES (1, 'oldest_transaction', @verdict, @value, 'seconds', @detail);

    -- A counter of the whole server, because every release has it. With accelerated database recovery, which Azure SQL always
    -- has, the database keeps its own row versions.
    SELECT @value = NULL, @verdict = 'warn', @detail = @right;
    BEGIN TRY
        IF OBJECT_ID(N'sys.dm_os_performance_counters') IS NULL
            SET @detail = N'this server does not report it';
        ELSE IF @sees = 1
        BEGIN
            SET @detail = N'this server does not report it';
            SELECT @value = MAX(cntr_value)
            FROM sys.dm_os_performance_counters
            WHERE object_name LIKE N'%:Transactions%' AND counter_name = N'Version Store Size (KB)';
            IF OBJECT_ID(N'sys.dm_tran_persistent_version_store_stats') IS NOT NULL
                SELECT @value = COALESCE(@value, 0) + COALESCE(SUM(persistent_version_store_size_kb), 0)
                FROM sys.dm_tran_persistent_version_store_stats
                WHERE database_id = DB_ID();
            IF @value IS NOT NULL
                SELECT @verdict = CASE WHEN @value > 10485760 THEN 'bad' WHEN @value > 1048576 THEN 'warn' ELSE 'ok' END,
                    @detail = CASE
                        WHEN @value > 1048576 THEN N'too many row versions in tempdb and in this database; end old transactions'
                        ELSE N'row versions of all databases in tempdb, and of this database'
                    END;
        END;
    END TRY
    BEGIN CATCH
        SELECT @value = NULL, @verdict = 'warn', @detail = ERROR_MESSAGE();
    END CATCH;
    INSERT INTO @checks VALUES (2, 'version_store', @verdict, @value, 'kilobytes', @detail);

    BEGIN TRY
        SELECT @value = COUNT(*), @seconds = DATEDIFF(SECOND, MIN(b.lease_until), @now)
        FROM (
            SELECT TOP (10000) lease_until FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE lease_until <= @now
        ) AS b;
        SET @verdict = CASE WHEN @seconds > 3600 THEN 'bad' WHEN @seconds > 60 THEN 'warn' ELSE 'ok' END;
        SET @detail = CASE
            WHEN @value = 0 THEN N'none'
            ELSE CONCAT(N'the oldest expired ', @seconds, N' s ago; claims of the type rescue them, or run EXEC mq.rescue_expired')
        END;
    END TRY
    BEGIN CATCH
        SELECT @value = NULL, @verdict = 'bad', @detail = CONCAT(N'this check failed: ', ERROR_MESSAGE());
    END CATCH;
    INSERT INTO @checks VALUES (3, 'expired_leases', @verdict, @value, 'claims', @detail);

    -- One check that fails, such as for a lack of rights, must not hide the others.
    BEGIN TRY
        INSERT INTO @checks (n, name, verdict, value, unit, detail)
        SELECT 100 + ROW_NUMBER() OVER (ORDER BY name), name, verdict, value, unit, detail FROM mq_internal.area_health();
    END TRY
    BEGIN CATCH
        INSERT INTO @checks VALUES (100, 'area_health', 'bad', NULL, '', CONCAT(N'this check failed: ', ERROR_MESSAGE()));
    END CATCH;
    -- Through object_fingerprint, which sees more than the caller.
    BEGIN TRY
        INSERT INTO @wrong (n, name)
        SELECT CASE i.kind WHEN 'index' THEN 6 ELSE 5 END, i.name
        FROM mq.installed AS i
        CROSS APPLY (SELECT mq_internal.object_fingerprint(i.name) AS fingerprint) AS f
        WHERE (i.kind = 'procedure' AND ISNULL(i.fingerprint, 0x) <> ISNULL(f.fingerprint, 0x))
            OR (i.kind = 'index' AND f.fingerprint IS NULL);
        SET @failed = N'none';
    END TRY
    BEGIN CATCH
        SET @failed = CONCAT(N'this check failed: ', ERROR_MESSAGE());
    END CATCH;
    SET @round = 5;
    WHILE @round < 7
    BEGIN
        SELECT @name = N'', @detail = NULL, @value = CASE @failed WHEN N'none' THEN 0 END;
        -- One after the other: STRING_AGG exists only from 2017 on.
        WHILE @name IS NOT NULL
        BEGIN
            SET @name = (SELECT MIN(name) FROM @wrong WHERE n = @round AND name > @name);
            IF @name IS NOT NULL
                SELECT @detail = CONCAT(@detail + N', ', @name), @value = @value + 1;
        END;
        INSERT INTO @checks
        SELECT @round, k.name, CASE @value WHEN 0 THEN 'ok' ELSE 'bad' END, @value, k.unit, COALESCE(k.before + @detail + k.after, @failed)
        FROM (
            VALUES (5, 'changed_objects', 'objects', N'missing or changed by hand: ', N'; run the installation again'),
                (6, 'missing_indexes', 'indexes', N'missing or disabled: ', N'; create it as in the migrations, or ALTER INDEX ... REBUILD')
        ) AS k (n, name, unit, before, after)
        WHERE k.n = @round;
        SET @round = @round + 1;
    END;

    SELECT @level = compatibility_level, @versions = is_read_committed_snapshot_on,
        @snapshots = CASE WHEN snapshot_isolation_state IN (1, 3) THEN 1 ELSE 0 END, @delayed_durability = delayed_durability
    FROM sys.databases
    WHERE name = DB_NAME(); -- on Azure SQL database_id may differ there
    INSERT INTO @checks
    SELECT 7, 'compatibility_level', CASE WHEN @level < 130 THEN 'bad' ELSE 'ok' END, @level, 'level', CASE
        WHEN @level < 130 THEN CONCAT(N'below 130, lists of bodies and outcomes cannot be read: ALTER DATABASE ', QUOTENAME(DB_NAME()),
            N' SET COMPATIBILITY_LEVEL = 130')
        ELSE N'high enough'
    END
    UNION ALL
    SELECT 8, 'read_committed_snapshot', 'ok', COALESCE(@versions, 0), 'flag', CASE
        WHEN @versions = 1 THEN N'on: consumers see committed rows and do not wait'
        ELSE N'off: consumers see uncommitted rows, or wait for locks; claims do not depend on it'
    END
    UNION ALL
    SELECT 9, 'snapshot_isolation', 'ok', COALESCE(@snapshots, 0), 'flag', CASE
        WHEN @snapshots = 1 THEN N'allowed: deleted rows are not cleaned up while a snapshot transaction is open'
        ELSE N'not allowed'
    END
    UNION ALL
    -- 2: forced.
    SELECT 10, 'durability', CASE @delayed_durability WHEN 2 THEN 'warn' ELSE 'ok' END, CASE @delayed_durability WHEN 2 THEN 0 ELSE 1 END, 'flag', CASE
        WHEN @delayed_durability = 2
            THEN N'DELAYED_DURABILITY is FORCED: a crash can lose messages and restore finished ones; set it to ALLOWED'
        ELSE N'commits are on disk, except those with DELAYED_DURABILITY = ON'
    END;

    -- Check twice: a group that another transaction is just repairing is not found the second time.
    SELECT @value = NULL, @verdict = 'warn', @round = 0;
    BEGIN TRY
        WHILE @round < 2
        BEGIN
            INSERT INTO @stuck (round, type, group_key)
            SELECT TOP (1000) @round, t.type, s.group_key
            FROM (
                SELECT DISTINCT k.type
                FROM (SELECT TOP (10000) type FROM mq.grouped WITH (READUNCOMMITTED) ORDER BY type, group_key, id) AS k
            ) AS t
            CROSS APPLY mq_internal.policy(t.type) AS p
            CROSS APPLY mq_internal.stuck_groups(t.type) AS s
            WHERE p.grouped = 1
            ORDER BY t.type, s.group_key;
            SET @round = @round + 1;
        END;
        SELECT @value = COUNT(*), @name = MIN(a.type)
        FROM @stuck AS a
        INNER JOIN @stuck AS b ON b.round = 1 AND b.type = a.type AND b.group_key = a.group_key
        WHERE a.round = 0;
        SET @verdict = CASE WHEN @value > 0 THEN 'bad' ELSE 'ok' END;
        SET @detail = CASE
            WHEN @value > 0 THEN CONCAT(N'groups of ', @name, N' have ready messages that no claim finds',
                N'; to repair them: EXEC mq.rescue_expired N''', REPLACE(@name COLLATE Latin1_General_100_BIN2, N'''', N''''''), N'''')
            ELSE N'none'
        END;
    END TRY
    BEGIN CATCH
        SET @detail = ERROR_MESSAGE();
    END CATCH;
    INSERT INTO @checks VALUES (11, 'stuck_groups', @verdict, @value, 'groups', @detail);

    SELECT @value = NULL, @verdict = 'warn', @detail = N'none';
    BEGIN TRY
        SELECT @value = COUNT(DISTINCT CONCAT(m.type, NCHAR(10), m.group_key)), @id = MIN(m.id)
        FROM (
            SELECT TOP (10000) e.id
            FROM mq.queue AS q WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            INNER LOOP JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.type = q.type
            WHERE q.dead_stops_group = 1
        ) AS k
        INNER LOOP JOIN mq.message AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = k.id
        WHERE m.group_key IS NOT NULL
        OPTION (FORCE ORDER);
        SELECT @detail = CONCAT(N'dead letter ', id, N' stops the group ''', REPLACE(group_key COLLATE Latin1_General_100_BIN2, N'''', N''''''),
            N''' of ', type, N'; EXEC mq.redrive ', id, N' retries it, EXEC mq.cancel ', id, N' deletes it')
        FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE id = @id;
        SET @verdict = CASE WHEN @value > 0 THEN 'warn' ELSE 'ok' END;
    END TRY
    BEGIN CATCH
        SET @detail = ERROR_MESSAGE();
    END CATCH;
    INSERT INTO @checks VALUES (12, 'stopped_groups', @verdict, @value, 'groups', @detail);

    SELECT @value = NULL, @verdict = 'warn', @detail = N'none';
    BEGIN TRY
        SELECT @value = COUNT(*), @id = MIN(m.id)
        FROM (SELECT TOP (10000) id FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ORDER BY id) AS k
        INNER LOOP JOIN mq.message AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = k.id
        WHERE m.dedup_key IS NOT NULL
        OPTION (FORCE ORDER);
        SELECT @detail = CONCAT(N'dead letter ', id, N' of ', type, N' holds the dedup_key ', dedup_key,
            N': send_message with this key sends nothing; EXEC mq.redrive ', id, N' retries it, EXEC mq.cancel ', id, N' deletes it')
        FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE id = @id;
        SET @verdict = CASE WHEN @value > 0 THEN 'warn' ELSE 'ok' END;
    END TRY
    BEGIN CATCH
        SET @detail = ERROR_MESSAGE();
    END CATCH;
    INSERT INTO @checks VALUES (13, 'dead_dedup_keys', @verdict, @value, 'keys', @detail);

    SELECT name, verdict, value AS measured, unit, REPLACE(REPLACE(detail, NCHAR(13), N' '), NCHAR(10), N' ') AS detail
    FROM @checks
    ORDER BY n;
END;
