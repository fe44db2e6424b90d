-- peek: list messages without claiming them.
-- Arguments:   @type (1 to 200 characters), @state (N: in claim order, ready before delayed; A; E and C: the newest
--              first; NULL: N), @size (1 to 10,000; NULL: 20), @body_length (characters of each body, 0 to 16,777,216;
--              NULL: all)
-- Returns:     up to @size messages with their state, consumer, times and error
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted states
-- Example:     EXEC mq.peek N'email', N'E', 20;
CREATE OR ALTER PROCEDURE mq.peek
    @type nvarchar(max),
    @state nvarchar(max) = NULL,
    @size bigint = NULL,
    @body_length bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- The longest body.
    DECLARE @name nvarchar(400), @grouped bit, @n int = 0, @length int = 16777216;
    DECLARE @found TABLE (
        n int NOT NULL PRIMARY KEY, id bigint NOT NULL, attempts smallint NOT NULL, moment datetime2(7), consumer nvarchar(400),
        batch_key uniqueidentifier, lease_until datetime2(7)
    );
    EXEC mq_internal.require_name 'type', @type, 0;
    SET @name = @type;
    -- Compared with a character appended, because the server ignores trailing blanks.
    IF (@state + N'.') COLLATE Latin1_General_100_BIN2 NOT IN (N'N.', N'A.', N'E.', N'C.')
        EXEC mq_internal.raise_error 'invalid_argument', N'state: must be N, A, E or C';
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    EXEC mq_internal.require_range 'body_length', @body_length, 0, 16777216;
    SELECT @size = COALESCE(@size, 20), @state = COALESCE(@state, N'N'), @length = COALESCE(@body_length, @length);

    -- First find the narrow rows, without waiting; then read the texts, because a dirty read of these could end the
    -- connection.
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @state = N'A'
        INSERT INTO @found (n, id, attempts, moment, consumer, batch_key, lease_until)
        SELECT TOP (@size) ROW_NUMBER() OVER (ORDER BY b.lease_until, b.batch_key, c.id), c.id, c.attempt, b.claimed_at, b.consumer,
            b.batch_key, b.lease_until
        FROM (
            SELECT TOP (@size) batch_key, claimed_at, lease_until, consumer
            FROM mq.batch
            WHERE type = @name
            ORDER BY lease_until, batch_key
        ) AS b
        INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
        ORDER BY b.lease_until, b.batch_key, c.id
        OPTION (FORCE ORDER, LOOP JOIN);
    ELSE IF @state = N'E'
        INSERT INTO @found (n, id, attempts, moment)
        SELECT TOP (@size) ROW_NUMBER() OVER (ORDER BY died_at DESC, id DESC), id, 0, died_at
        FROM mq.dead
        WHERE type = @name
        ORDER BY died_at DESC, id DESC;
    ELSE IF @state = N'C'
        INSERT INTO @found (n, id, attempts, moment)
        SELECT TOP (@size) ROW_NUMBER() OVER (ORDER BY completed_at DESC, id DESC), id, 0, completed_at
        FROM mq.archive
        WHERE type = @name
        ORDER BY completed_at DESC, id DESC;
    ELSE
    BEGIN
        -- Not from mq_internal.policy, which reads committed rows and would wait for an open set_queue.
        SELECT TOP (1) @grouped = grouped FROM mq.queue WHERE type IN (@name, N'') ORDER BY type DESC;
        -- In a queue with groups the rows of mq.ready are tickets.
        IF @grouped = 1
            INSERT INTO @found (n, id, attempts)
            SELECT TOP (@size) ROW_NUMBER() OVER (ORDER BY group_key, id), id, attempts
            FROM mq.grouped
            WHERE type = @name
            ORDER BY group_key, id;
        ELSE
            INSERT INTO @found (n, id, attempts)
            SELECT TOP (@size) ROW_NUMBER() OVER (ORDER BY priority, lane, run_at, id), id, attempts
            FROM mq.ready
            WHERE type = @name
            ORDER BY priority, lane, run_at, id;
        SET @n = @@ROWCOUNT;
        IF @n < @size
            INSERT INTO @found (n, id, attempts, moment)
            SELECT TOP (@size - @n) @n + ROW_NUMBER() OVER (ORDER BY run_at, id), id, attempts, run_at
            FROM mq.delayed
            WHERE type = @name
            ORDER BY run_at, id;
    END;

    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @state = N'C'
        SELECT c.id, c.type, 'C' AS state, LEFT(c.body COLLATE Latin1_General_100_CI_AS_SC, @length) AS body, c.headers,
            CAST(c.priority AS int) AS priority, c.group_key, c.dedup_key,
            CAST(c.attempts AS int) AS attempts, c.created_at, c.source, CAST(NULL AS datetime2(7)) AS run_at, c.consumer,
            CAST(NULL AS uniqueidentifier) AS batch_key, CAST(NULL AS datetime2(7)) AS lease_until, c.completed_at AS changed_at,
            CAST(NULL AS nvarchar(max)) AS error
        FROM @found AS f
        INNER JOIN mq.archive AS c WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON c.completed_at = f.moment AND c.id = f.id
        ORDER BY f.n
        OPTION (FORCE ORDER, LOOP JOIN);
    ELSE
        SELECT m.id, m.type, CAST(@state AS char(1)) AS state, LEFT(m.body COLLATE Latin1_General_100_CI_AS_SC, @length) AS body, m.headers,
            CAST(m.priority AS int) AS priority, m.group_key, m.dedup_key,
            CAST(COALESCE(e.attempts, f.attempts) AS int) AS attempts, m.created_at, m.source,
            CASE @state WHEN N'N' THEN m.run_at END AS run_at, COALESCE(e.consumer, f.consumer) AS consumer, f.batch_key, f.lease_until,
            CASE @state WHEN N'A' THEN f.moment ELSE e.died_at END AS changed_at,
            COALESCE(e.error, d.error, CASE WHEN m.cancelled_at IS NOT NULL THEN N'cancelled' END) AS error
        FROM @found AS f
        INNER JOIN mq.message AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = f.id
        LEFT JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON @state = N'E' AND e.id = f.id
        LEFT JOIN mq.delayed AS d WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON @state = N'N' AND d.type = @name AND d.run_at = f.moment AND d.id = f.id
        WHERE @state <> N'E' OR e.id IS NOT NULL
        ORDER BY f.n
        OPTION (FORCE ORDER, LOOP JOIN);
END;
