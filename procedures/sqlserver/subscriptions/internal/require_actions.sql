-- require_actions: refuse an action that is not one or more of the letters I, U and D, each once.
-- Arguments: @action, @optional (1: NULL is allowed)
CREATE OR ALTER PROCEDURE mq_internal.require_actions
    @action nvarchar(max),
    @optional bit
AS
BEGIN
    DECLARE @letters nvarchar(max), @at int;
    IF @action IS NULL AND @optional = 1
        RETURN;
    -- Remove each letter once: nothing but the dot may be left. The dot makes trailing blanks count.
    SET @letters = CONCAT(@action, N'.');
    SET @at = CHARINDEX(N'I', @letters COLLATE Latin1_General_100_BIN2);
    IF @at > 0
        SET @letters = STUFF(@letters, @at, 1, N'');
    SET @at = CHARINDEX(N'U', @letters COLLATE Latin1_General_100_BIN2);
    IF @at > 0
        SET @letters = STUFF(@letters, @at, 1, N'');
    SET @at = CHARINDEX(N'D', @letters COLLATE Latin1_General_100_BIN2);
    IF @at > 0
        SET @letters = STUFF(@letters, @at, 1, N'');
    IF COALESCE(DATALENGTH(@action), 0) = 0 OR @letters COLLATE Latin1_General_100_BIN2 <> N'.'
        EXEC mq_internal.raise_error 'invalid_argument', N'action: must be I, U or D (insert, update, delete), or several of them';
END;
