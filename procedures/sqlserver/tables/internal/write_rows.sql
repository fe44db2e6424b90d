-- write_rows: write the change that each entry asks for to its row.
-- Arguments: @name (of the polling table), @key (of the batch), @ready (the status of rows whose entry is not active:
--     ready_value, or error_value of dead rows), @skip (1: skip rows that others have locked, and store each row's JSON
--     in its entry)
-- Returns: in the entries: hit (1: found and written; 2: found with another status; 0: not found), refused (1: the
--     table refused the change; error says why); @problem and @detail: the error when the table is gone
--
-- Values of todo: D done, P only find, A active, F failed, L given back, X dead, Y ready again, Z nothing. Equal rows
-- are written together: TOP changes as many of them as there are entries.
--
-- Statements on the user's table have the caller's rights, which do not include the queue's tables: a temporary table
-- carries the entries there and back. The table's triggers could change it: only the columns hit, refused, error and
-- row_json are read back, and only for entries of this claim.
CREATE OR ALTER PROCEDURE mq_internal.write_rows
    @name nvarchar(400), @key uniqueidentifier, @ready nvarchar(max), @skip bit, @problem varchar(200) OUTPUT,
    @detail nvarchar(2000) OUTPUT
AS
BEGIN
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @status nvarchar(300), @value nvarchar(400);
    DECLARE @active nvarchar(max), @done nvarchar(max), @error nvarchar(max), @again nvarchar(max), @delete bit, @keyed bit;
    DECLARE @low bigint, @high bigint = 0, @some int, @flag int, @from nvarchar(max), @to nvarchar(max), @todo char(1);
    DECLARE @rows nvarchar(max);
    DECLARE @pieces mq.pieces;
    CREATE TABLE #mq_entry (
        id bigint NOT NULL PRIMARY KEY, active bit NOT NULL, todo char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
        hit tinyint NOT NULL, refused bit NOT NULL, ident_hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        error nvarchar(max) COLLATE DATABASE_DEFAULT NULL
    );
    EXEC mq_internal.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        RETURN;
    SELECT @active = active_value, @done = done_value, @error = error_value, @again = ready_value,
        @delete = CASE on_complete WHEN 'delete' THEN 1 ELSE 0 END, @keyed = CASE WHEN key_columns IS NULL THEN 0 ELSE 1 END
    FROM mq.polled WHERE name = @name;
    INSERT INTO @pieces (name, piece) SELECT name, piece FROM mq_internal.polled_pieces(@name, @skip);
    INSERT INTO @pieces (name, piece)
    SELECT 'lock', CASE
        WHEN @shape IN ('b', 'd') THEN N''
        WHEN @skip = 1 THEN N' WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)'
        ELSE N' WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)'
    END;
    IF @skip = 0
        INSERT INTO @pieces (name, piece) VALUES ('row', N'e.row_json');
    SET @rows = mq_internal.fill(N'FROM #mq_entry AS e
CROSS APPLY OPENJSON(e.ident) WITH ({fields}) AS r
INNER JOIN {table} AS t{lock} ON {match}
WHERE e.id BETWEEN @low AND @high AND e.active = @flag AND HASHBYTES(''SHA2_256'', {identity}) = e.ident_hash', @pieces);
    INSERT INTO @pieces (name, piece) VALUES ('rows', @rows), ('from', NULL);

    WHILE 1 = 1
    BEGIN
        SET @low = @high + 1;
        SELECT @high = MAX(id), @some = COUNT(*)
        FROM (
            SELECT TOP (1000) id FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE batch_key = @key AND id >= @low AND todo < 'Z'
            ORDER BY id
        ) AS c;
        IF @some = 0
            BREAK;
        DELETE FROM #mq_entry;
        INSERT INTO #mq_entry (id, active, todo, hit, refused, ident_hash, ident)
        SELECT id, active, todo, hit, refused, ident_hash, ident
        FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE batch_key = @key AND id BETWEEN @low AND @high AND todo < 'Z';
        SET @flag = 0;
        WHILE @flag < 2
        BEGIN
            SET @from = CASE @flag WHEN 1 THEN @active ELSE @ready END;
            UPDATE @pieces
            SET piece = CASE
                WHEN @status IS NULL THEN N'1 = 1' WHEN @from IS NULL THEN CONCAT(N't.', @status, N' IS NULL')
                ELSE CONCAT(N't.', @status, N' = ', REPLACE(@value, N'?', N'@from'))
            END
            WHERE name = 'from';
            EXEC mq_internal.find_entries @pieces, @keyed, @flag, @from, @low, @high;
            SET @todo = NULL;
            WHILE @status IS NOT NULL OR @delete = 1
            BEGIN
                SELECT @todo = MIN(todo) FROM #mq_entry WHERE active = @flag AND hit = 1 AND todo > COALESCE(@todo, ' ');
                IF @todo IS NULL
                    BREAK;
                -- Skip rows that already have the new status.
                IF @todo = 'P' OR (@todo = 'A' AND @flag = 1) OR (@todo IN ('F', 'L') AND @flag = 0)
                    OR (@status IS NULL AND @todo <> 'D')
                    CONTINUE;
                SET @to = CASE @todo WHEN 'D' THEN @done WHEN 'A' THEN @active WHEN 'X' THEN @error ELSE @again END;
                EXEC mq_internal.write_entries @pieces, @keyed, @delete, @flag, @from, @todo, @to, @low, @high;
            END;
            SET @flag = @flag + 1;
        END;
        UPDATE e
        SET hit = n.hit, refused = n.refused, row_json = CASE @skip WHEN 1 THEN n.row_json ELSE e.row_json END,
            error = CASE n.refused WHEN 1 THEN LEFT(n.error, 4000) ELSE e.error END
        FROM #mq_entry AS n
        INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = n.id
        WHERE e.batch_key = @key AND e.name = @name
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END;
END;
