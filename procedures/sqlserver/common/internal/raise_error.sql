-- raise_error: raise a numbered error of the contract.
-- Arguments: @name (the error's name), @detail (the argument and its limit), @value (replaces {} in the detail)
CREATE OR ALTER PROCEDURE mq_internal.raise_error
    @name varchar(200), @detail nvarchar(2000), @value nvarchar(2000) = NULL
AS
BEGIN
    DECLARE @number int = CASE @name
        WHEN 'wrong_isolation' THEN 50001
        WHEN 'invalid_argument' THEN 50002
        WHEN 'wrong_kind' THEN 50003
        WHEN 'queue_not_empty' THEN 50004
        WHEN 'not_found' THEN 50005
        WHEN 'unsuitable_table' THEN 50006
        WHEN 'already_exists' THEN 50007
        WHEN 'lease_lost' THEN 50008
        WHEN 'area_missing' THEN 50009
        WHEN 'cancelled' THEN 50011
    END;
    IF @value IS NOT NULL
        SET @detail = STUFF(@detail, CHARINDEX(N'{}', @detail), 2, @value);
    -- THROW drops a single percent sign and the text after it.
    DECLARE @message nvarchar(2048) = REPLACE(CONCAT(@name, N': ', @detail), N'%', N'%%');
    THROW @number, @message, 1;
END;
