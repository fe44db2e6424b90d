-- read_object: the members of a flat JSON object; no row for NULL. require_object raises the error.
-- Returns:     name, value (decoded; numbers unchanged; NULL for null), kind (string, number, boolean, null), fits (0:
--              not such an object, a nested value, a name that is given twice, or a text that drivers cannot read: with
--              the character NUL or half a surrogate pair)
CREATE OR ALTER FUNCTION mq_internal.read_object (@object nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT o.[key] AS name, o.value,
        CASE o.type WHEN 0 THEN N'null' WHEN 1 THEN N'string' WHEN 2 THEN N'number' WHEN 3 THEN N'boolean' END AS kind,
        CASE
            WHEN t.is_object = 0 OR o.type > 3 THEN 0
            -- Append a character: a comparison ignores trailing blanks.
            WHEN COUNT(*) OVER (PARTITION BY (o.[key] + N'.') COLLATE Latin1_General_100_BIN2) > 1 THEN 0
            WHEN CHARINDEX(NCHAR(0) COLLATE Latin1_General_100_BIN2, CONCAT(o.[key], o.value)) > 0 THEN 0
            -- In a binary order surrogates are single characters: D800 to DBFF, then DC00 to DFFF.
            WHEN CONCAT(N'.', o.[key], N'.', o.value, N'.') COLLATE Latin1_General_100_BIN2
                LIKE N'%[' + CAST(0x00D8 AS nchar(1)) + N'-' + CAST(0xFFDB AS nchar(1)) + N'][^' + CAST(0x00DC AS nchar(1))
                    + N'-' + CAST(0xFFDF AS nchar(1)) + N']%' THEN 0
            WHEN CONCAT(N'.', o.[key], N'.', o.value, N'.') COLLATE Latin1_General_100_BIN2
                LIKE N'%[^' + CAST(0x00D8 AS nchar(1)) + N'-' + CAST(0xFFDB AS nchar(1)) + N'][' + CAST(0x00DC AS nchar(1))
                    + N'-' + CAST(0xFFDF AS nchar(1)) + N']%' THEN 0
            ELSE 1
        END AS fits
    FROM (
        SELECT CASE
            WHEN SUBSTRING(@object, PATINDEX(N'%[^ ' + NCHAR(9) + NCHAR(10) + NCHAR(13) + N']%', @object), 1) = N'{'
                AND ISJSON(@object) = 1 THEN 1
            ELSE 0
        END AS is_object
    ) AS t
    OUTER APPLY OPENJSON(CASE t.is_object WHEN 1 THEN @object ELSE N'{}' END) AS o
    WHERE @object IS NOT NULL AND (t.is_object = 0 OR o.type IS NOT NULL);
