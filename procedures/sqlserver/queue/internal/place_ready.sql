-- place_ready: insert messages into mq.ready at the position where they were sent. The caller lowers the mark.
-- Arguments: @type, @items (at most 1,000)
CREATE OR ALTER PROCEDURE mq_internal.place_ready
    @type nvarchar(400), @items mq.items READONLY
AS
BEGIN
    DECLARE @grouped bit, @ring bit, @fair bit;
    SELECT @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@type);
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
    END;
    -- A ticket at this place may be one that another claim is dropping: the new one gets the current time.
    INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
    SELECT @type, p.priority, p.lane, CASE WHEN r.id IS NULL THEN p.run_at ELSE SYSUTCDATETIME() END, m.id, i.attempts
    FROM @items AS i
    INNER JOIN mq.message AS m ON m.id = i.id
    CROSS APPLY mq_internal.place(@ring, @fair, @grouped, m.priority, m.group_key, m.run_at) AS p
    LEFT JOIN mq.ready AS r WITH (READUNCOMMITTED)
        ON @grouped = 1 AND r.type = @type AND r.priority = p.priority AND r.lane = p.lane AND r.run_at = p.run_at AND r.id = m.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
