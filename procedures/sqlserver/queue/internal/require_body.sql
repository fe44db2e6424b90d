-- require_body: refuse a text that has more than @limit bytes in UTF-8.
-- Arguments: @argument (its name in the contract), @value, @limit (bytes), @limit_text (the limit in words), @optional
--     (1: NULL is allowed)
--
-- The server stores UTF-16, 2 bytes for most characters, and has no UTF-8 before SQL Server 2019. One code unit is 1 to
-- 3 bytes of UTF-8, so bytes are counted only if the number of code units does not decide.
CREATE OR ALTER PROCEDURE mq_internal.require_body
    @argument varchar(200), @value nvarchar(max), @limit bigint, @limit_text nvarchar(200), @optional bit
AS
BEGIN
    DECLARE @units bigint = DATALENGTH(@value) / 2, @bytes bigint = 0, @at bigint = 1, @piece nvarchar(4000);
    DECLARE @detail nvarchar(2000);
    IF @value IS NULL AND @optional = 1
        RETURN;
    SET @bytes = @units;
    IF @units <= @limit AND 3 * @units > @limit
    BEGIN
        IF COLLATIONPROPERTY(N'Latin1_General_100_BIN2_UTF8', 'CodePage') IS NOT NULL
            -- SQL Server 2019 and later count the bytes themselves. Earlier versions cannot parse this statement.
            EXEC sp_executesql
                N'SET @bytes = DATALENGTH(CAST(@value COLLATE Latin1_General_100_BIN2_UTF8 AS varchar(max)));',
                N'@value nvarchar(max), @bytes bigint OUTPUT', @value, @bytes OUTPUT;
        ELSE
            WHILE @at <= @units AND @bytes <= @limit
            BEGIN
                -- A binary collation counts code units; other collations may count characters.
                SET @piece = SUBSTRING(@value COLLATE Latin1_General_100_BIN2, @at, 4000);
                IF PATINDEX(N'%[^' + NCHAR(1) + N'-' + NCHAR(127) + N']%', @piece COLLATE Latin1_General_100_BIN2) > 0
                    -- Each half of a surrogate pair stands for two of four bytes.
                    SELECT @bytes = @bytes + SUM(CASE WHEN u.code < 128 THEN 0 WHEN u.code < 2048 OR u.code BETWEEN 55296 AND 57343 THEN 1 ELSE 2 END)
                    FROM (
                        SELECT UNICODE(SUBSTRING(@piece COLLATE Latin1_General_100_BIN2, 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n, 1)) AS code
                        FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a (n)
                        CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b (n)
                        CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS c (n)
                        CROSS JOIN (VALUES (0), (1), (2), (3)) AS d (n)
                        WHERE a.n + 10 * b.n + 100 * c.n + 1000 * d.n < DATALENGTH(@piece) / 2
                    ) AS u;
                SET @at = @at + 4000;
            END;
    END;
    IF @value IS NULL OR @bytes > @limit
    BEGIN
        SET @detail = CONCAT(@argument, N': must be a text of up to ', @limit_text);
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
END;
