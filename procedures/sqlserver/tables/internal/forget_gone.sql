-- forget_gone: delete due entries whose rows were deleted or have another status.
-- Arguments: @name (of the polling table), @key (of the batch; its entries of state N, for which write_rows has
--     searched)
-- Transaction: waits for no other transaction
--
-- Entries of locked rows are left for the next claim. This call does not wait for the transactions that hold the locks:
-- without READ_COMMITTED_SNAPSHOT it reads their uncommitted changes.
CREATE OR ALTER PROCEDURE mq_internal.forget_gone
    @name nvarchar(400), @key uniqueidentifier
AS
BEGIN
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @status nvarchar(300), @value nvarchar(400);
    DECLARE @problem varchar(200), @detail nvarchar(2000), @ready nvarchar(max), @active nvarchar(max), @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    IF NOT EXISTS (
        SELECT * FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE batch_key = @key AND state = 'N' AND hit <> 1
    )
        RETURN;
    EXEC mq_internal.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        EXEC mq_internal.raise_error @problem, @detail;
    SELECT @ready = ready_value, @active = active_value FROM mq.polled WHERE name = @name;
    INSERT INTO @pieces (name, piece) SELECT name, piece FROM mq_internal.polled_pieces(@name, 0);
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        INSERT INTO @pieces (name, piece) VALUES ('dirty', N' WITH (READUNCOMMITTED)');
    CREATE TABLE #mq_due (
        id bigint NOT NULL PRIMARY KEY, active bit NOT NULL, there bit NOT NULL, ident_hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
    );
    INSERT INTO #mq_due (id, active, there, ident_hash, ident)
    SELECT id, active, 0, ident_hash, ident
    FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
    WHERE batch_key = @key AND state = 'N' AND hit = 0;
    SET @statement = mq_internal.fill(CONCAT(N'UPDATE e
SET there = 1
FROM #mq_due AS e
CROSS APPLY OPENJSON(e.ident) WITH ({fields}) AS r
WHERE EXISTS (
    SELECT * FROM {table} AS t{dirty} WHERE {match} AND HASHBYTES(''SHA2_256'', {identity}) = e.ident_hash',
        CASE WHEN @shape = 'c' THEN N' AND ((e.active = 1 AND {is_active}) OR (e.active = 0 AND {is_ready}))' END, N'
);'), @pieces);
    EXEC sp_executesql @statement, N'@ready nvarchar(max), @active nvarchar(max)', @ready = @ready, @active = @active;
    DELETE e
    FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
    LEFT JOIN #mq_due AS d ON d.id = e.id
    WHERE e.batch_key = @key AND e.state = 'N' AND (e.hit = 2 OR (e.hit = 0 AND d.there = 0));
END;
