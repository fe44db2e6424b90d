-- leave_place: take one new message, due or not, out of the tables in which it waits.
-- Arguments:   @type, @id, @before (only if it is due earlier; NULL: whenever), @ordered (the policy)
-- Returns:     @attempts (so far; NULL: it is not new, is being claimed at this moment, or is due later), @error (of the last one),
--              @group_key (empty when it has none), @priority
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits
-- Example:     EXEC mq.leave_place N'email', 17, NULL, 0, @group_key OUTPUT, @priority OUTPUT, @attempts OUTPUT, @error OUTPUT;

CREATE OR ALTER PROCEDURE mq.leave_place
    @type nvarchar(400),
    @id bigint,
    @before datetime2(7),
    @ordered bit,
    @group_key nvarchar(400) OUTPUT,
    @priority smallint OUTPUT,
    @attempts smallint OUTPUT,
    @error nvarchar(max) OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @run_at datetime2(7), @places mq.places;
    SELECT @attempts = NULL, @error = NULL;
    -- First without a lock, which would stay until the caller's end: whoever finishes a message would wait for it.
    IF NOT EXISTS (
        SELECT *
        FROM mq.message AS m WITH (READUNCOMMITTED)
        LEFT JOIN mq.delayed AS d WITH (READUNCOMMITTED) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        LEFT JOIN mq.grouped AS g WITH (READUNCOMMITTED) ON g.id = m.id
        LEFT JOIN mq.ready AS r WITH (READUNCOMMITTED)
            ON r.type = m.type AND r.priority = m.priority AND r.run_at = m.run_at AND r.id = m.id
        LEFT JOIN mq.ready AS o WITH (READUNCOMMITTED)
            ON o.type = m.type AND o.priority = -32768 AND o.run_at = '0001-01-01' AND o.id = m.id
        WHERE m.id = @id AND COALESCE(d.id, g.id, r.id, o.id) IS NOT NULL AND (@before IS NULL OR m.run_at < @before)
    )
        RETURN;
    -- The message before its rows, as erase does.
    SELECT @group_key = COALESCE(group_key, N''), @priority = priority, @run_at = run_at
    FROM mq.message WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE id = @id AND type = @type;
    IF @run_at IS NULL OR @run_at >= @before
        RETURN;

    -- Delayed ones first: a claim may be promoting them.
    SELECT @attempts = attempts, @error = error
    FROM mq.delayed WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type AND run_at = @run_at AND id = @id;
    IF @attempts IS NOT NULL
        DELETE FROM mq.delayed WHERE type = @type AND run_at = @run_at AND id = @id;
    ELSE IF @ordered = 1
    BEGIN
        SELECT @attempts = attempts FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
        IF @attempts IS NULL
            RETURN;
        DELETE FROM mq.grouped WHERE id = @id;
        INSERT INTO @places (priority, run_at, id) VALUES (@priority, @run_at, @id);
        EXEC mq.drop_tickets @type, @places;
    END
    ELSE
    BEGIN
        SELECT @attempts = attempts
        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
        IF @attempts IS NOT NULL
            DELETE FROM mq.ready WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
        ELSE
        BEGIN
            -- The place of all messages of a ring, and of those whose sender saw a ring that was rolled back.
            SELECT @attempts = attempts
            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND run_at = '0001-01-01' AND id = @id;
            IF @attempts IS NOT NULL
                DELETE FROM mq.ready WHERE type = @type AND priority = -32768 AND run_at = '0001-01-01' AND id = @id;
        END;
    END;
END;
GO
