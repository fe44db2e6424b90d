-- next_lanes: the first ticket of each lane of a fair queue, from a position on.
-- Arguments: @type, @priority, @lane (read after it), @wrapped (1: the start of the priority was passed), @until (the
--     lane where the round ends), @size (the most lanes)
-- Returns: n, id, lane, run_at, attempts
CREATE OR ALTER FUNCTION mq_internal.next_lanes (
    @type nvarchar(400), @priority smallint, @lane nvarchar(37), @wrapped bit, @until nvarchar(37), @size int
)
RETURNS @tickets TABLE (
    n int NOT NULL PRIMARY KEY, id bigint NOT NULL, lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_at datetime2(7) NOT NULL, attempts smallint NOT NULL
)
AS
BEGIN
    DECLARE @n int = 0, @next nvarchar(37), @id bigint, @run_at datetime2(7), @attempts smallint;
    WHILE @n < @size
    BEGIN
        SET @next = NULL;
        SELECT TOP (1) @next = lane, @id = id, @run_at = run_at, @attempts = attempts
        FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = @priority AND lane > @lane
        ORDER BY priority, lane, run_at, id;
        IF @wrapped = 1 AND (@next IS NULL OR @next > @until COLLATE Latin1_General_100_BIN2)
            BREAK;
        IF @next IS NULL
            SELECT @wrapped = 1, @lane = N'';
        ELSE
        BEGIN
            SELECT @n = @n + 1, @lane = @next;
            INSERT INTO @tickets (n, id, lane, run_at, attempts) VALUES (@n, @id, @next, @run_at, @attempts);
        END;
    END;
    RETURN;
END;
