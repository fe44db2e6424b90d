-- pick_rows: add entries for rows of a polling table that have none, in claim order.
-- Arguments: @name (of the polling table; the caller has locked its low-water mark), @key (of the batch), @top (1 to
--     1,000), @from_place (1: start at the low-water mark), @now, @consumer
-- Returns: @took: the number of new entries. They have todo P; place and copies are their order value and their number
--     among equal rows
CREATE OR ALTER PROCEDURE mq_internal.pick_rows
    @name nvarchar(400), @key uniqueidentifier, @top int, @from_place bit, @now datetime2(7), @consumer nvarchar(400),
    @took int OUTPUT
AS
BEGIN
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @status nvarchar(300), @value nvarchar(400);
    DECLARE @problem varchar(200), @detail nvarchar(2000), @keys nvarchar(4000), @by nvarchar(4000), @list nvarchar(max);
    DECLARE @wanted nvarchar(max), @hint nvarchar(300), @column nvarchar(300), @sort nvarchar(max), @n int = 0;
    DECLARE @pieces mq.pieces;
    SET @took = 0;
    EXEC mq_internal.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        EXEC mq_internal.raise_error @problem, @detail;
    SELECT @keys = key_columns, @by = order_column FROM mq.polled WHERE name = @name;
    IF @by IS NULL AND (SELECT COUNT(*) FROM mq_internal.columns_of(@object_id, @keys) WHERE @keys IS NOT NULL) = 1
        SET @by = @keys;
    SET @list = COALESCE(@by, @keys);
    SET @wanted = CONCAT(@status + CASE WHEN @list IS NOT NULL THEN N', ' ELSE N'' END, @list);
    SET @hint = mq_internal.index_hint(@object_id, @wanted);
    IF @hint IS NULL AND @shape <> 'f'
    BEGIN
        INSERT INTO @pieces (name, piece)
        VALUES ('quoted', @quoted), ('wanted', @wanted),
            ('index', QUOTENAME(LEFT(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)), 110) + N'_claim'));
        SET @detail = mq_internal.fill(N'without this index claims would scan the table: CREATE INDEX {index} ON {quoted} ({wanted})', @pieces);
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
    END;
    WHILE @list IS NOT NULL
    BEGIN
        SELECT @n = @n + 1, @column = NULL;
        SELECT @column = quoted FROM mq_internal.columns_of(@object_id, @list) WHERE n = @n;
        IF @column IS NULL
            BREAK;
        SET @sort = CONCAT(@sort + N', ', N't.', @column);
    END;
    INSERT INTO @pieces (name, piece) SELECT name, piece FROM mq_internal.polled_pieces(@name, 1);
    INSERT INTO @pieces (name, piece)
    VALUES ('hint', @hint), ('sort', COALESCE(@sort, N'(SELECT NULL)')), ('order', @by);
    -- The order value as text, and read back from it.
    INSERT INTO @pieces (name, piece)
    SELECT p.name, p.piece
    FROM (VALUES (1)) AS o (one)
    LEFT JOIN mq_internal.column_texts(@object_id, @by) AS c ON @by IS NOT NULL
    CROSS APPLY (
        VALUES ('order_text', COALESCE(REPLACE(c.written, N'?', N't.' + @by), N'CAST(NULL AS nvarchar(max))')),
            ('place', REPLACE(c.read_back, N'?', N'@place')), ('settled', REPLACE(c.read_back, N'?', N'@settled')),
            ('high', REPLACE(c.read_back, N'?', N'@high'))
    ) AS p (name, piece);

    IF @shape IN ('a', 'e')
        EXEC mq_internal.pick_keyed @pieces, @name, @key, @top, @from_place, @now, @consumer, @took OUTPUT;
    ELSE IF @shape IN ('c', 'f')
        EXEC mq_internal.pick_equal @pieces, @name, @key, @top, @now, @consumer, @took OUTPUT;
    ELSE
        EXEC mq_internal.pick_placed @pieces, @name, @key, @top, @now, @consumer, @took OUTPUT;
    -- Delete old entries of dead rows that somebody has set back to ready.
    IF @shape = 'a' AND @took > 0
        DELETE e
        FROM (
            SELECT DISTINCT ident_hash FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch)) WHERE batch_key = @key AND todo = 'P'
        ) AS n
        INNER JOIN mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_ident)) ON e.name = @name AND e.ident_hash = n.ident_hash
        WHERE e.state = 'E'
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
