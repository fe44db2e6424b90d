-- extra_bytes: how many bytes of UTF-8 a text needs in addition to its number of UTF-16 code units.
-- Arguments: @piece (up to 4,000 code units)
-- Returns: 0 to 8,000
CREATE OR ALTER FUNCTION mq_internal.extra_bytes (@piece nvarchar(4000))
RETURNS int
AS
BEGIN
    DECLARE @extra int = 0;
    IF PATINDEX(N'%[^' + NCHAR(1) + N'-' + NCHAR(127) + N']%', @piece COLLATE Latin1_General_100_BIN2) > 0
        SELECT @extra = SUM(
            -- Each half of a surrogate pair stands for two of four bytes.
            CASE WHEN u.code < 128 THEN 0 WHEN u.code < 2048 OR u.code BETWEEN 55296 AND 57343 THEN 1 ELSE 2 END
        )
        FROM (
            SELECT UNICODE(
                SUBSTRING(@piece COLLATE Latin1_General_100_BIN2, 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n, 1)
            ) AS code
            FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a (n)
            CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b (n)
            CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS c (n)
            CROSS JOIN (VALUES (0), (1), (2), (3)) AS d (n)
            WHERE a.n + 10 * b.n + 100 * c.n + 1000 * d.n < DATALENGTH(@piece) / 2
        ) AS u;
    RETURN @extra;
END;
