-- promote: move due messages from mq.delayed to mq.ready.
-- Arguments: @type, @after and @until (due after @after and up to @until), @size (maximum number of messages)
-- Returns: @moved: number of messages; @first_run_at: their earliest run_at in mq.ready, or NULL
CREATE OR ALTER PROCEDURE mq_internal.promote
    @type nvarchar(400), @after datetime2(7), @until datetime2(7), @size int, @moved int OUTPUT,
    @first_run_at datetime2(7) OUTPUT
AS
BEGIN
    DECLARE @grouped bit, @ring bit, @fair bit, @step int = 1000, @top int, @took int = 1;
    DECLARE @due TABLE (
        id bigint NOT NULL PRIMARY KEY, run_at datetime2(7) NOT NULL, priority smallint NOT NULL, attempts smallint NOT NULL
    );
    SELECT @moved = 0, @first_run_at = NULL, @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@type);
    WHILE @took > 0 AND @moved < @size
    BEGIN
        DELETE FROM @due;
        SET @top = CASE WHEN @size - @moved < @step THEN @size - @moved ELSE @step END;
        DELETE d
        OUTPUT deleted.id, deleted.run_at, deleted.priority, deleted.attempts INTO @due (id, run_at, priority, attempts)
        FROM (
            SELECT TOP (@top) type, run_at, id
            FROM mq.delayed WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND run_at > @after AND run_at <= @until
            ORDER BY run_at, id
        ) AS f
        INNER JOIN mq.delayed AS d WITH (ROWLOCK) ON d.type = f.type AND d.run_at = f.run_at AND d.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @took = @@ROWCOUNT;
        IF @took > 0
        BEGIN
            SET @moved = @moved + @took;
            IF @ring = 1
                SET @first_run_at = '0001-01-01';
            ELSE IF @first_run_at IS NULL
                SELECT @first_run_at = MIN(run_at) FROM @due;
            IF @grouped = 1
            BEGIN
                INSERT INTO mq.grouped (type, group_key, id, attempts)
                SELECT @type, COALESCE(m.group_key, N''), m.id, i.attempts
                FROM @due AS i
                INNER JOIN mq.message AS m ON m.id = i.id
                WHERE NOT EXISTS (SELECT * FROM mq.grouped AS g WHERE g.id = i.id)
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                -- A message that blocked its group (a failed one, or one without a token) returns: unblock the group; the
                -- message is its first one again.
                DELETE l
                FROM @due AS i
                INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = i.id AND l.blocks = 1
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            END;
            INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
            SELECT @type, p.priority, p.lane, p.run_at, i.id, i.attempts
            FROM @due AS i
            INNER JOIN mq.message AS m ON m.id = i.id
            CROSS APPLY mq_internal.place(@ring, @fair, @grouped, i.priority, m.group_key, i.run_at) AS p
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        END;
        IF @took < @top
            SET @took = 0;
    END;
END;
