-- is_ring: whether a type is read as a ring: then its messages stand in mq.ready in the order of their ids.
-- Arguments:   @type
-- Returns:     1 or 0
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT mq.is_ring(N'email');
--
-- Read dirty: a claim inserts the reader's new place before it deletes the old one, so one of them is always seen, and no sender
-- waits for a claim, or keeps claims from writing a place for as long as a SERIALIZABLE transaction lasts.

CREATE OR ALTER FUNCTION mq.is_ring (@type nvarchar(400))
RETURNS bit
AS
BEGIN
    RETURN CASE WHEN EXISTS (SELECT * FROM mq.ring WITH (READUNCOMMITTED) WHERE type = @type) THEN 1 ELSE 0 END;
END;
GO
