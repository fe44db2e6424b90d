-- index_hint: the hint that forces an index which begins with these columns, for dynamic SQL.
-- Arguments: @object_id (the table), @list (the columns that the index must begin with, in this order)
-- Returns: ', INDEX([name])', to append to other hints; NULL when the table has no such index
--
-- Without the hint and with outdated statistics, the server would scan the whole table. A nonclustered index ends with the columns of the clustered index. Filtered indexes, indexes that are not B-trees,
-- and indexes that mix ascending and descending columns do not count.
CREATE OR ALTER FUNCTION mq_internal.index_hint (@object_id int, @list nvarchar(max))
RETURNS nvarchar(300)
AS
BEGIN
    DECLARE @name nvarchar(128), @count int;
    SELECT @count = COUNT(*) FROM mq_internal.columns_of(@object_id, @list);
    SELECT TOP (1) @name = i.name
    FROM sys.indexes AS i
    CROSS APPLY (
        SELECT MAX(x.key_ordinal) AS own
        FROM sys.index_columns AS x WHERE x.object_id = @object_id AND x.index_id = i.index_id
    ) AS k
    CROSS APPLY (
        SELECT COUNT(*) AS fitting, MIN(CAST(x.is_descending_key AS int)) AS low, MAX(CAST(x.is_descending_key AS int)) AS high
        FROM mq_internal.columns_of(@object_id, @list) AS c
        INNER JOIN sys.index_columns AS x ON x.object_id = @object_id AND x.column_id = c.column_id
            AND ((x.index_id = i.index_id AND x.key_ordinal = c.n)
                OR (i.index_id > 1 AND x.index_id = 1 AND x.key_ordinal = c.n - k.own))
    ) AS f
    WHERE i.object_id = @object_id AND i.type IN (1, 2) AND i.is_disabled = 0 AND i.is_hypothetical = 0
        AND i.has_filter = 0 AND f.fitting = @count
        AND f.low = f.high AND @count > 0
    ORDER BY i.index_id;
    RETURN N', INDEX(' + QUOTENAME(@name) + N')';
END;
