-- require_name: refuse a type, key or name that is not 1 to 200 characters long, or ends with a blank.
-- Arguments: @argument (its name in the contract), @value, @optional (1: NULL passes)
--
-- To this server 'a' and 'a ' are the same name. Callers take names as nvarchar(max), because a shorter type would cut
-- a long name without an error. Then they copy a name into a variable of the column's type: a comparison with
-- nvarchar(max) converts the column, and uses only the first column of the index, as a range.
CREATE OR ALTER PROCEDURE mq_internal.require_name
    @argument varchar(200), @value nvarchar(max), @optional bit
AS
BEGIN
    DECLARE @detail nvarchar(2000);
    IF @value IS NULL AND @optional = 1
        RETURN;
    -- LEN ignores trailing blanks, and only such a collation counts a surrogate pair as one character.
    IF @value IS NULL OR LEN((@value + N'.') COLLATE Latin1_General_100_CI_AS_SC) NOT BETWEEN 2 AND 201
        SET @detail = CONCAT(@argument, N': must be 1 to 200 characters');
    -- Compared by its code: most collations ignore control characters, and so treat them like a trailing blank.
    ELSE IF UNICODE(RIGHT(@value, 1)) = 32
        SET @detail = CONCAT(@argument, N': must not end with a blank');
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
END;
