-- drop_tickets: delete tickets of a grouped queue, except tickets that another transaction has locked.
-- Arguments: @type, @tickets (their positions; at most 3,000)
CREATE OR ALTER PROCEDURE mq_internal.drop_tickets
    @type nvarchar(400), @tickets mq.places READONLY
AS
BEGIN
    DELETE r
    FROM @tickets AS t
    INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        ON r.type = @type AND r.priority = t.priority AND r.lane = t.lane AND r.run_at = t.run_at AND r.id = t.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
