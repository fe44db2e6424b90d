-- outside_ring: whether some messages of a ring are outside it: sent before the type was a ring, or by a sender that did
--               not see it yet.
-- Returns:     1 or 0
-- Transaction: reads only, at READ COMMITTED; skips locked rows

CREATE OR ALTER FUNCTION mq_internal.outside_ring (@type nvarchar(400))
RETURNS bit
AS
BEGIN
    -- Two scans, one key range each: they do not read the whole ring.
    IF EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND priority > -32768)
        RETURN 1;
    IF EXISTS (
        SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = -32768 AND run_at > '0001-01-01'
    )
        RETURN 1;
    RETURN 0;
END;
GO
