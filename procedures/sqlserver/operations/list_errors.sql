-- list_errors: count the newest 10,000 dead letters of a queue by their error.
-- Arguments:   @type (1 to 200 characters), @size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; skips dead letters that another call is changing
-- Example:     EXEC mq.list_errors N'email';

CREATE OR ALTER PROCEDURE mq.list_errors
    @type nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @top int = 20, @most int = 10000;
    DECLARE @found TABLE (
        id bigint NOT NULL PRIMARY KEY, died_at datetime2(7) NOT NULL, dotted nvarchar(410) COLLATE Latin1_General_100_BIN2 NOT NULL
    );
    EXEC mq.require_name 'type', @type, 0;
    EXEC mq.require_range 'size', @size, 1, 10000;
    SELECT @name = @type, @top = COALESCE(@size, @top);
    INSERT INTO @found (id, died_at, dotted)
    -- Compared with a character appended, because the server ignores trailing blanks.
    SELECT e.id, e.died_at, CONCAT(mq.error_group(e.error), N'.')
    FROM (
        SELECT TOP (@most) id
        FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @name
        ORDER BY died_at DESC, id DESC
    ) AS d
    INNER JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = d.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SELECT TOP (@top) LEFT(f.dotted, LEN(f.dotted) - 1) AS error, COUNT_BIG(*) AS count, MIN(f.died_at) AS first_at,
        MAX(f.died_at) AS last_at, MAX(CASE f.nth WHEN 1 THEN f.id ELSE 0 END) AS last_id
    FROM (
        SELECT id, died_at, dotted, ROW_NUMBER() OVER (PARTITION BY dotted ORDER BY died_at DESC, id DESC) AS nth
        FROM @found
    ) AS f
    GROUP BY f.dotted
    ORDER BY COUNT_BIG(*) DESC, LEFT(f.dotted, LEN(f.dotted) - 1), f.dotted;
END;
GO
