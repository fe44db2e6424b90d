-- drop_tickets: delete tickets of a grouped queue, except tickets that another transaction has locked.
-- Arguments: @type, @tickets (their positions; at most 3,000)
CREATE OR ALTER PROCEDURE mq_internal.drop_tickets
    @type nvarchar(400),
    @tickets mq.places READONLY
AS
BEGIN
    DELETE r
    FROM (
        SELECT k.type, k.priority, k.lane, k.run_at, k.id
        FROM @tickets AS t
        INNER JOIN mq.ready AS k WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON k.type = @type AND k.priority = t.priority AND k.lane = t.lane AND k.run_at = t.run_at AND k.id = t.id
    ) AS f
    INNER JOIN mq.ready AS r WITH (ROWLOCK)
        ON r.type = f.type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
