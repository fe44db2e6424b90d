-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   @type (1 to 200 characters; NULL: any, allowed only with an id); @filter, a flat JSON object with id,
--              dedup_key or group_key; @size (1 to 10,000; NULL: 20), @body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to @size messages with the columns of peek that have all values of the filter, ordered by id. Archived
--              messages are found only by id. A group_key finds all due messages of a queue with groups, and other
--              messages among the first 10,000 of their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted states
-- Example:     EXEC mq.find_messages N'invoice', N'{"group_key": "customer-17"}';
--
-- It reads the same tables as message_state, but only by keys. Like peek, it first finds the rows and then reads the
-- texts.
CREATE OR ALTER PROCEDURE mq.find_messages
    @type nvarchar(max) = NULL,
    @filter nvarchar(max) = NULL,
    @size bigint = NULL,
    @body_length bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- The longest body.
    DECLARE @length int = 16777216, @top int = 20, @name nvarchar(400), @dedup nvarchar(400), @group nvarchar(400);
    DECLARE @id bigint, @dedup_key nvarchar(max), @group_key nvarchar(max);
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @known nvarchar(max) = N'{"id": [-9223372036854775808, 9223372036854775807], "dedup_key": "text", "group_key": "text"}';
    DECLARE @ids TABLE (id bigint NOT NULL PRIMARY KEY);
    DECLARE @found TABLE (
        id bigint NOT NULL PRIMARY KEY, state char(1), attempts smallint, place datetime2(7), run_at datetime2(7), consumer nvarchar(400),
        batch_key uniqueidentifier, lease_until datetime2(7), moment datetime2(7)
    );
    EXEC mq_internal.require_name 'type', @type, 1;
    EXEC mq_internal.require_options @filter, N'filter', @known;
    INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@filter, @known);
    SELECT @id = CAST((SELECT value FROM @read WHERE name = N'id') AS bigint), @dedup_key = (SELECT value FROM @read WHERE name = N'dedup_key'),
        @group_key = (SELECT value FROM @read WHERE name = N'group_key');
    EXEC mq_internal.require_name 'dedup_key', @dedup_key, 1;
    EXEC mq_internal.require_name 'group_key', @group_key, 1;
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    EXEC mq_internal.require_range 'body_length', @body_length, 0, 16777216;
    IF @id IS NULL AND @type IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'type: must not be NULL unless the filter has an id';
    IF @id IS NULL AND @dedup_key IS NULL AND @group_key IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'filter: must have an id, a dedup_key or a group_key';
    SELECT @name = @type, @dedup = @dedup_key, @group = @group_key, @top = COALESCE(@size, @top),
        @length = COALESCE(@body_length, @length);

    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @id IS NOT NULL
        INSERT INTO @ids (id) VALUES (@id);
    ELSE IF @dedup IS NOT NULL
        INSERT INTO @ids (id) SELECT id FROM mq.dedup WHERE type = @name AND dedup_key = @dedup;
    ELSE
        INSERT INTO @ids (id) SELECT id FROM mq_internal.ids_of_group(@name, @group, @top);
    INSERT INTO @found (id, state, attempts, place, run_at, consumer, batch_key, lease_until, moment)
    SELECT TOP (@top) m.id,
        CASE
            WHEN a.batch_key IS NOT NULL THEN 'A'
            WHEN e.id IS NOT NULL THEN 'E'
            WHEN COALESCE(d.id, g.id, r.id) IS NOT NULL THEN 'N'
        END,
        COALESCE(a.attempt, e.attempts, d.attempts, g.attempts, r.attempts), m.run_at,
        CASE WHEN g.id IS NULL THEN m.run_at ELSE COALESCE(m.sent_run_at, m.run_at) END, a.consumer, a.batch_key, a.lease_until,
        COALESCE(a.claimed_at, e.died_at)
    FROM @ids AS i
    INNER JOIN mq.message AS m ON m.id = i.id
    LEFT JOIN mq.dead AS e ON e.id = m.id
    LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq.grouped AS g ON g.id = m.id
    -- Claims are searched only for messages not found elsewhere, because each batch of the type costs a seek.
    OUTER APPLY (
        SELECT TOP (1) c.attempt, b.consumer, b.batch_key, b.lease_until, b.claimed_at
        FROM mq.batch AS b
        INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key AND c.id = m.id
        WHERE b.type = m.type AND COALESCE(e.id, d.id, g.id) IS NULL
    ) AS a
    OUTER APPLY mq_internal.ready_row(m.type, m.id, m.priority, m.group_key, m.run_at) AS r
    WHERE (@name IS NULL OR m.type = @name) AND (@dedup IS NULL OR m.dedup_key = @dedup) AND (@group IS NULL OR m.group_key = @group)
    ORDER BY i.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @id IS NOT NULL AND NOT EXISTS (SELECT * FROM @found)
        INSERT INTO @found (id, state, moment)
        SELECT TOP (1) id, 'C', completed_at
        FROM mq.archive
        WHERE id = @id AND (@name IS NULL OR type = @name) AND (@dedup IS NULL OR dedup_key = @dedup)
            AND (@group IS NULL OR group_key = @group);

    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF EXISTS (SELECT * FROM @found WHERE state = 'C')
        SELECT c.id, c.type, f.state, LEFT(c.body COLLATE Latin1_General_100_CI_AS_SC, @length) AS body, c.headers,
            CAST(c.priority AS int) AS priority, c.group_key, c.dedup_key, CAST(c.attempts AS int) AS attempts, c.created_at, c.source,
            f.run_at, c.consumer, f.batch_key, f.lease_until, c.completed_at AS changed_at, CAST(NULL AS nvarchar(max)) AS error
        FROM @found AS f
        INNER JOIN mq.archive AS c WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON c.completed_at = f.moment AND c.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN);
    ELSE
        SELECT m.id, m.type, f.state, LEFT(m.body COLLATE Latin1_General_100_CI_AS_SC, @length) AS body, m.headers,
            CAST(m.priority AS int) AS priority, m.group_key, m.dedup_key, CAST(f.attempts AS int) AS attempts, m.created_at, m.source,
            CASE f.state WHEN 'N' THEN f.run_at END AS run_at, COALESCE(f.consumer, e.consumer) AS consumer, f.batch_key, f.lease_until,
            f.moment AS changed_at, COALESCE(e.error, d.error, CASE WHEN m.cancelled_at IS NOT NULL THEN N'cancelled' END) AS error
        FROM @found AS f
        INNER JOIN mq.message AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = f.id
        LEFT JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = f.id AND f.state = 'E'
        LEFT JOIN mq.delayed AS d WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON d.type = m.type AND d.run_at = f.place AND d.id = f.id
        ORDER BY f.id
        OPTION (FORCE ORDER, LOOP JOIN);
END;
