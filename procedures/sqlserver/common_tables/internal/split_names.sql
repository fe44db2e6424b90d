-- split_names: split a name or a list of names in T-SQL: plain, [quoted] or "quoted".
-- Arguments: @text, @separator (a dot or a comma)
-- Returns: n (1, 2, ...), name without its quotes (a closing quote inside is doubled); one row with n 0 and name NULL
--     for a malformed text
CREATE OR ALTER FUNCTION mq_internal.split_names (@text nvarchar(max), @separator nchar(1))
RETURNS @parts TABLE (n int NOT NULL, name nvarchar(400))
AS
BEGIN
    -- Compared by code unit: most collations equate a wide quote with a quote. In a collation with supplementary
    -- characters, LEFT and SUBSTRING count such a character as one, but PATINDEX in BIN2 counts two.
    DECLARE @left nvarchar(max) = @text COLLATE Latin1_General_100_BIN2, @name nvarchar(max), @quote nchar(1);
    DECLARE @n int = 0, @at int, @valid bit = 0;
    DECLARE @blank nvarchar(10) = N'[ ' + NCHAR(9) + NCHAR(10) + NCHAR(13) + N']%';
    DECLARE @ends nvarchar(60) = N'%[^0-9A-Za-z_@$' + NCHAR(128) + N'-' + NCHAR(65533) + N']%';
    -- Long enough for the names of 1,024 columns, the most that a table can have.
    WHILE DATALENGTH(@left) <= 300000
    BEGIN
        WHILE @left LIKE @blank COLLATE Latin1_General_100_BIN2
            SET @left = STUFF(@left COLLATE Latin1_General_100_BIN2, 1, 1, N'');
        SELECT @name = N'', @valid = 0, @n = @n + 1, @quote = CASE UNICODE(@left) WHEN 91 THEN N']' WHEN 34 THEN N'"' END;
        IF @quote IS NULL
        BEGIN
            SET @at = PATINDEX(@ends COLLATE Latin1_General_100_BIN2, REPLACE(@left COLLATE Latin1_General_100_BIN2, N'#', N'_') + N' ');
            -- A name does not begin with a digit, @ or $.
            IF @at > 1 AND UNICODE(@left) NOT BETWEEN 48 AND 57 AND UNICODE(@left) NOT IN (36, 64)
                SELECT @name = LEFT(@left COLLATE Latin1_General_100_BIN2, @at - 1),
                    @left = SUBSTRING(@left COLLATE Latin1_General_100_BIN2, @at, 150000), @valid = 1;
        END
        ELSE
        BEGIN
            SET @left = STUFF(@left COLLATE Latin1_General_100_BIN2, 1, 1, N'');
            SET @at = CHARINDEX(@quote, @left COLLATE Latin1_General_100_BIN2);
            WHILE @at > 0 AND @valid = 0
            BEGIN
                SELECT @name = @name + LEFT(@left COLLATE Latin1_General_100_BIN2, @at - 1),
                    @left = SUBSTRING(@left COLLATE Latin1_General_100_BIN2, @at + 1, 150000);
                IF UNICODE(@left) = UNICODE(@quote)
                BEGIN
                    SELECT @name = @name + @quote, @left = STUFF(@left COLLATE Latin1_General_100_BIN2, 1, 1, N'');
                    SET @at = CHARINDEX(@quote, @left COLLATE Latin1_General_100_BIN2);
                END
                ELSE
                    SET @valid = 1;
            END;
        END;
        -- LEN ignores trailing blanks, and only such a collation counts a surrogate pair as one character.
        IF LEN((@name + N'.') COLLATE Latin1_General_100_CI_AS_SC) NOT BETWEEN 2 AND 201
            SET @valid = 0;
        IF @valid = 0
            BREAK;
        INSERT INTO @parts (n, name) VALUES (@n, @name);
        WHILE @left LIKE @blank COLLATE Latin1_General_100_BIN2
            SET @left = STUFF(@left COLLATE Latin1_General_100_BIN2, 1, 1, N'');
        IF DATALENGTH(@left) = 0
            BREAK;
        SET @valid = 0;
        IF UNICODE(@left) <> UNICODE(@separator)
            BREAK;
        SET @left = STUFF(@left COLLATE Latin1_General_100_BIN2, 1, 1, N'');
    END;
    IF @valid = 0
    BEGIN
        DELETE FROM @parts;
        INSERT INTO @parts (n, name) VALUES (0, NULL);
    END;
    RETURN;
END;
