-- make_trigger: create or replace the trigger of a watched table.
-- Arguments: @object_id (the table), @keys (its primary key columns, quoted, separated by commas), @owner (the EXECUTE
--     AS clause; NULL: none), @watched_id (its row in mq.watched)
-- Transaction: waits for transactions that use the table, and they wait for its end
CREATE OR ALTER PROCEDURE mq_internal.make_trigger
    @object_id int, @keys nvarchar(max), @owner nvarchar(300), @watched_id int
AS
BEGIN
    DECLARE @new_order nvarchar(max), @old_order nvarchar(max), @same nvarchar(max), @touched nvarchar(max);
    DECLARE @n int = 0, @column nvarchar(300), @schema nvarchar(300), @name nvarchar(300);
    DECLARE @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    SELECT @schema = QUOTENAME(CAST(SCHEMA_NAME(schema_id) AS nvarchar(128))), @name = QUOTENAME(CAST(name AS nvarchar(128)))
    FROM sys.tables
    WHERE object_id = @object_id;
    WHILE 1 = 1
    BEGIN
        SELECT @n = @n + 1, @column = NULL;
        SELECT @column = quoted FROM mq_internal.columns_of(@object_id, @keys) WHERE n = @n;
        IF @column IS NULL
            BREAK;
        SELECT @new_order = CONCAT(@new_order + N', ', N'i.', @column), @old_order = CONCAT(@old_order + N', ', N'd.', @column),
            @same = CONCAT(@same + N' AND ', N'd.', @column, N' = i.', @column),
            @touched = CONCAT(@touched + N' OR ', N'UPDATE(', @column, N')');
    END;
    INSERT INTO @pieces (name, piece)
    VALUES ('owner', @owner), ('id', CAST(@watched_id AS nvarchar(11))), ('trigger', CONCAT(@schema, N'.[mq_watch_', @object_id, N']')),
        ('table', CONCAT(@schema, N'.', @name)),
        ('new_order', @new_order), ('old_order', @old_order), ('same', @same), ('touched', @touched),
        ('new_key', mq_internal.row_json(@object_id, @keys, N'i')), ('old_key', mq_internal.row_json(@object_id, @keys, N'd'));
    SET @statement = mq_internal.fill(N'DROP TRIGGER IF EXISTS {trigger};', @pieces);
    EXEC sp_executesql @statement;
    SET @statement = mq_internal.fill(N'CREATE TRIGGER {trigger} ON {table} {owner}
AFTER INSERT, UPDATE, DELETE
AS
BEGIN
    -- Made by mq.watch_table: it sends messages to the subscriptions of this table.
    SET NOCOUNT ON;
    DECLARE @id int = {id}, @action char(1), @events mq.events;
    IF EXISTS (SELECT * FROM inserted)
        SET @action = CASE WHEN EXISTS (SELECT * FROM deleted) THEN ''U'' ELSE ''I'' END;
    ELSE IF EXISTS (SELECT * FROM deleted)
        SET @action = ''D'';
    IF NOT EXISTS (
        SELECT * FROM mq.subscription WITH (READCOMMITTED, FORCESEEK, INDEX (subscription_pk)) WHERE watched_id = @id AND action = @action
    )
        RETURN;
    -- The writer''s session may have set them otherwise.
    SET ROWCOUNT 0;
    SET CONCAT_NULL_YIELDS_NULL ON;
    IF @action = ''D''
        INSERT INTO @events (n, key_json)
        SELECT ROW_NUMBER() OVER (ORDER BY {old_order}), {old_key}
        FROM deleted AS d;
    ELSE IF @action = ''U'' AND ({touched})
        -- A trigger cannot see which old key became which new key. Keys in both sets did not change; the others are paired
        -- in order.
        INSERT INTO @events (n, key_json, old_key_json)
        SELECT ROW_NUMBER() OVER (ORDER BY p.part, p.n), p.new_key,
            CASE WHEN p.old_key COLLATE Latin1_General_100_BIN2 <> p.new_key THEN p.old_key END
        FROM (
            SELECT 1 AS part, ROW_NUMBER() OVER (ORDER BY {new_order}) AS n, {new_key} AS new_key, {old_key} AS old_key
            FROM inserted AS i
            INNER JOIN deleted AS d ON {same}
            UNION ALL
            SELECT 2 AS part, a.n, a.new_key, b.old_key
            FROM (
                SELECT ROW_NUMBER() OVER (ORDER BY {new_order}) AS n, {new_key} AS new_key
                FROM inserted AS i
                WHERE NOT EXISTS (SELECT * FROM deleted AS d WHERE {same})
            ) AS a
            INNER JOIN (
                SELECT ROW_NUMBER() OVER (ORDER BY {old_order}) AS n, {old_key} AS old_key
                FROM deleted AS d
                WHERE NOT EXISTS (SELECT * FROM inserted AS i WHERE {same})
            ) AS b ON b.n = a.n
        ) AS p;
    ELSE
        INSERT INTO @events (n, key_json)
        SELECT ROW_NUMBER() OVER (ORDER BY {new_order}), {new_key}
        FROM inserted AS i;
    EXEC mq_internal.send_changes @id, @action, @events;
END;', @pieces);
    EXEC sp_executesql @statement;
END;
