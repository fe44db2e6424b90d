-- trigger_pieces: return the SQL fragments of a watched table's trigger, for mq_internal.fill.
-- Arguments: @object_id (the table), @keys (its primary key columns, quoted, separated by commas)
-- Returns: name, piece: trigger and table (names, quoted); new_key and old_key (JSON), new_order and old_order (the
--     columns), over the aliases i and d; same (true when a row kept its key); touched (true when an UPDATE names a key
--     column)
CREATE OR ALTER FUNCTION mq_internal.trigger_pieces (@object_id int, @keys nvarchar(max))
RETURNS @pieces TABLE (name varchar(20) NOT NULL PRIMARY KEY, piece nvarchar(max))
AS
BEGIN
    DECLARE @new_order nvarchar(max), @old_order nvarchar(max), @same nvarchar(max), @touched nvarchar(max);
    DECLARE @n int = 0, @column nvarchar(300), @schema nvarchar(300), @name nvarchar(300);
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
    VALUES ('trigger', CONCAT(@schema, N'.[mq_watch_', @object_id, N']')), ('table', CONCAT(@schema, N'.', @name)),
        ('new_order', @new_order), ('old_order', @old_order), ('same', @same), ('touched', @touched),
        ('new_key', mq_internal.row_json(@object_id, @keys, N'i')), ('old_key', mq_internal.row_json(@object_id, @keys, N'd'));
    RETURN;
END;
