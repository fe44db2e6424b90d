-- has_key: whether columns include a primary key or a unique index of NOT NULL columns.
-- Arguments: @object_id (the table), @list (the columns, separated by commas)
-- Returns: 1 or 0
CREATE OR ALTER FUNCTION mq_internal.has_key (@object_id int, @list nvarchar(max))
RETURNS bit
AS
BEGIN
    RETURN CASE WHEN EXISTS (
        SELECT *
        FROM sys.indexes AS i
        WHERE i.object_id = @object_id AND i.is_unique = 1 AND i.is_disabled = 0 AND i.is_hypothetical = 0
            AND i.has_filter = 0
            AND NOT EXISTS (
                SELECT *
                FROM sys.index_columns AS x
                LEFT JOIN mq_internal.columns_of(@object_id, @list) AS k ON k.column_id = x.column_id
                WHERE x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0
                    AND (k.column_id IS NULL OR k.nullable = 1)
            )
    ) THEN 1 ELSE 0 END;
END;
