-- place_ready: insert messages into mq.ready at the position where they were sent. The caller lowers the mark.
-- Arguments:   @type, @items (at most 1,000), @grouped (the policy), @ring (1: the type is a ring)

CREATE OR ALTER PROCEDURE mq_internal.place_ready
    @type nvarchar(400),
    @items mq.items READONLY,
    @grouped bit,
    @ring bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @lowest bigint;
    UPDATE m
    SET run_at = m.sent_run_at
    FROM @items AS i
    INNER JOIN mq.message AS m WITH (ROWLOCK) ON m.id = i.id
    WHERE m.sent_run_at IS NOT NULL
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @grouped = 1
    BEGIN
        INSERT INTO mq.grouped (type, group_key, id, attempts)
        SELECT @type, COALESCE(m.group_key, N''), m.id, i.attempts
        FROM @items AS i
        INNER JOIN mq.message AS m ON m.id = i.id
        WHERE NOT EXISTS (SELECT * FROM mq.grouped AS g WHERE g.id = i.id)
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        DELETE l
        FROM @items AS i
        INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = i.id AND l.blocks = 1
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        -- Another claim may be dropping an old ticket: the new one gets the current time as its position.
        INSERT INTO mq.ready (type, priority, run_at, id, attempts)
        SELECT @type, m.priority, CASE WHEN r.id IS NULL THEN m.run_at ELSE SYSUTCDATETIME() END, m.id, i.attempts
        FROM @items AS i
        INNER JOIN mq.message AS m ON m.id = i.id
        LEFT JOIN mq.ready AS r WITH (READUNCOMMITTED)
            ON r.type = @type AND r.priority = m.priority AND r.run_at = m.run_at AND r.id = m.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END
    ELSE
    BEGIN
        INSERT INTO mq.ready (type, priority, run_at, id, attempts)
        SELECT @type, CASE @ring WHEN 1 THEN -32768 ELSE m.priority END,
            CASE @ring WHEN 1 THEN '0001-01-01' ELSE m.run_at END, m.id,
            i.attempts
        FROM @items AS i
        INNER JOIN mq.message AS m ON m.id = i.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @ring = 1
        BEGIN
            SELECT @lowest = MIN(id) FROM @items;
            EXEC mq_internal.lower_ring @type, @lowest;
        END;
    END;
END;
GO
