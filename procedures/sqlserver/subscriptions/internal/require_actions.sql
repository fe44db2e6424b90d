-- require_actions: refuse an action that is not one or more of the letters I, U and D, each once.
-- Arguments: @action, @optional (1: NULL is allowed)
CREATE OR ALTER PROCEDURE mq_internal.require_actions
    @action nvarchar(max), @optional bit
AS
BEGIN
    IF @action IS NULL AND @optional = 1
        RETURN;
    -- Compared by code unit. The dot makes a blank at the end count.
    IF @action IS NULL OR LEN(@action + N'.') NOT BETWEEN 2 AND 4 OR @action COLLATE Latin1_General_100_BIN2 LIKE N'%[^IUD]%'
        OR @action COLLATE Latin1_General_100_BIN2 LIKE N'%I%I%' OR @action COLLATE Latin1_General_100_BIN2 LIKE N'%U%U%'
        OR @action COLLATE Latin1_General_100_BIN2 LIKE N'%D%D%'
        EXEC mq_internal.raise_error 'invalid_argument', N'action: must be I, U or D (insert, update, delete), or several of them';
END;
