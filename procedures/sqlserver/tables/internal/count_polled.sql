-- count_polled: count the rows of a polling table that are in one state, up to 10,000.
-- Arguments: @name, @state (A claimed, N waiting or E dead)
-- Returns: the count
-- Transaction: reads only, at READ COMMITTED; skips entries that another call is changing
CREATE OR ALTER FUNCTION mq_internal.count_polled (@name nvarchar(400), @state char(1))
RETURNS bigint
AS
BEGIN
    DECLARE @cap int = 10000;
    RETURN (
        SELECT COUNT_BIG(*)
        FROM (
            SELECT TOP (@cap) id
            FROM mq.polled_row WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (polled_row_due))
            WHERE name = @name AND state = @state
            ORDER BY run_at, id
        ) AS r
    );
END;
