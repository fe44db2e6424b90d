-- index_hint: the hint that forces an index which begins with a column, for dynamic SQL.
-- Arguments: @object_id (the table), @column (its name, quoted)
-- Returns: ', INDEX([name])', to append to other hints; NULL when the table has no such index
--
-- Without the hint and with outdated statistics, the server would scan the whole table. Filtered indexes and indexes
-- other than B-trees are ignored.
CREATE OR ALTER FUNCTION mq_internal.index_hint (@object_id int, @column nvarchar(300))
RETURNS nvarchar(300)
AS
BEGIN
    DECLARE @name nvarchar(128);
    SELECT TOP (1) @name = i.name
    FROM sys.indexes AS i
    INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal = 1
    INNER JOIN mq_internal.columns_of(@object_id, @column) AS c ON c.column_id = x.column_id
    WHERE i.object_id = @object_id AND i.type IN (1, 2) AND i.is_disabled = 0 AND i.is_hypothetical = 0 AND i.has_filter = 0
    ORDER BY i.index_id;
    RETURN N', INDEX(' + QUOTENAME(@name) + N')';
END;
