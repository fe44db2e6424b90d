-- columns_of: list columns of a table.
-- Arguments: @object_id, @list (names separated by commas; NULL: all columns)
-- Returns: n (1, 2, ... in the order of the list), name and quoted (as in the catalog), type (the server's own),
--     nullable, column_id; no row for a name that is not a column
CREATE OR ALTER FUNCTION mq_internal.columns_of (@object_id int, @list nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT COALESCE(l.n, CAST(ROW_NUMBER() OVER (ORDER BY c.column_id) AS int)) AS n, CAST(c.name AS nvarchar(128)) AS name,
        QUOTENAME(CAST(c.name AS nvarchar(128))) AS quoted, c.is_nullable AS nullable, c.column_id,
        c.scale,
        -- 240: all .NET types.
        CAST(TYPE_NAME(CASE c.system_type_id WHEN 240 THEN c.user_type_id ELSE c.system_type_id END) AS nvarchar(128)) AS type
    FROM sys.columns AS c
    -- The server resolves the name, with its own rules for comparing names.
    LEFT JOIN mq_internal.split_names(@list, N',') AS l ON COLUMNPROPERTY(@object_id, l.name, 'ColumnId') = c.column_id
    WHERE c.object_id = @object_id AND (@list IS NULL OR l.n IS NOT NULL);
