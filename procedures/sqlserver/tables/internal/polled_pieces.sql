-- polled_pieces: return the SQL fragments that read and write a polling table, for mq_internal.fill.
-- Arguments: @name (of the polling table, which mq_internal.polled_shape has checked), @rows (1: include the pieces
--     that read a row)
-- Returns: name, piece: table; status (its column); identity (of a row, over the alias t), fields (what OPENJSON reads
--     of it) and match (condition over t and those fields, r); is_ready and is_active (conditions over t, @ready and
--     @active); to (the value of the parameter @to); with @rows: key and row (JSON)
CREATE OR ALTER FUNCTION mq_internal.polled_pieces (@name nvarchar(400), @rows bit)
RETURNS @pieces TABLE (name varchar(20) NOT NULL PRIMARY KEY, piece nvarchar(max))
AS
BEGIN
    DECLARE @quoted nvarchar(600), @object_id int, @list nvarchar(max), @status nvarchar(300), @value nvarchar(400), @ready nvarchar(max);
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)), @list = COALESCE(key_columns, ident_columns),
        @status = status_column, @ready = ready_value
    FROM mq.polled WHERE name = @name;
    SET @object_id = OBJECT_ID(@quoted, N'U');
    SELECT @value = read_back FROM mq_internal.column_texts(@object_id, @status) WHERE @status IS NOT NULL;
    INSERT INTO @pieces (name, piece)
    VALUES ('table', @quoted), ('status', @status),
        ('identity', mq_internal.row_identity(@object_id, @list, NULL, 'json')),
        ('fields', mq_internal.row_identity(@object_id, @list, NULL, 'fields')),
        ('match', mq_internal.row_identity(@object_id, @list, NULL, 'match')),
        ('is_ready', CASE
            WHEN @status IS NULL THEN N'1 = 1' WHEN @ready IS NULL THEN CONCAT(N't.', @status, N' IS NULL')
            ELSE CONCAT(N't.', @status, N' = ', REPLACE(@value, N'?', N'@ready'))
        END),
        ('is_active', CONCAT(N't.', @status, N' = ', REPLACE(@value, N'?', N'@active'))),
        ('to', REPLACE(@value, N'?', N'@to'));
    IF @rows = 1
        INSERT INTO @pieces (name, piece)
        VALUES ('key', mq_internal.row_json(@object_id, @list, N't')), ('row', mq_internal.row_json(@object_id, NULL, N't'));
    RETURN;
END;
