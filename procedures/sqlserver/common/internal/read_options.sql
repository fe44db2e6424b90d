-- read_options: the members of a flat JSON object of options; require_options raises the errors.
-- Arguments: @known (a JSON object, by name: [low, high] of a whole number, where [0, 1] takes true and false too; "text";
--     "time")
-- Returns: name, value (of a flag 0 or 1, of a time its UTC; NULL for null), low and high (of a number), problem (NULL: none)
CREATE OR ALTER FUNCTION mq_internal.read_options (@options nvarchar(max), @known nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT v.name, CASE WHEN v.expected = N'time' THEN CONVERT(nvarchar(40), v.moment, 126) ELSE v.value END AS value, v.low, v.high,
        CASE
            WHEN v.expected IS NULL THEN N'is not known'
            WHEN v.kind = N'null' THEN NULL
            WHEN v.expected = N'number'
                THEN CASE WHEN TRY_CAST(v.value AS bigint) BETWEEN v.low AND v.high THEN NULL ELSE N'must be a number' END
            WHEN v.kind <> N'string' THEN N'must be a text'
            WHEN v.expected = N'time' AND v.moment IS NULL THEN N'must be a time with its zone, such as 2026-11-27T08:30:00Z'
        END AS problem
    FROM (
        SELECT o.name, o.kind, CASE k.type WHEN 4 THEN N'number' WHEN 1 THEN k.value END AS expected,
            TRY_CAST(CASE k.type WHEN 4 THEN JSON_VALUE(k.value, '$[0]') END AS bigint) AS low,
            TRY_CAST(CASE k.type WHEN 4 THEN JSON_VALUE(k.value, '$[1]') END AS bigint) AS high,
            CASE
                WHEN k.type = 4 AND o.kind = N'boolean' AND k.value = N'[0, 1]' THEN CASE o.value WHEN N'true' THEN N'1' ELSE N'0' END
                WHEN k.type = 4 AND o.kind <> N'number' THEN NULL
                ELSE o.value
            END AS value,
            CASE
                WHEN k.value = N'time' AND o.value COLLATE Latin1_General_100_BIN2 LIKE N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ]%'
                    AND (o.value COLLATE Latin1_General_100_BIN2 LIKE N'%[0-9]Z'
                        OR o.value COLLATE Latin1_General_100_BIN2 LIKE N'%[0-9][-+][0-9][0-9]:[0-9][0-9]')
                    THEN CAST(SWITCHOFFSET(TRY_CAST(REPLACE(o.value, N'Z', N'+00:00') AS datetimeoffset(7)), '+00:00') AS datetime2(7))
            END AS moment
        FROM mq_internal.read_object(@options) AS o
        -- Append a character: a comparison ignores trailing blanks.
        LEFT JOIN OPENJSON(@known) AS k
            ON (k.[key] + N'.') COLLATE Latin1_General_100_BIN2 = (o.name + N'.') COLLATE Latin1_General_100_BIN2
    ) AS v;
