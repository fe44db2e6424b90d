-- is_ring: whether a type is a ring: its messages are in mq.ready in order of id.
-- Returns:     1 or 0
--
-- The read is READUNCOMMITTED. A claim inserts the reader's new position before it deletes the old one, so this always sees
-- one of them. No sender waits for a claim, and a SERIALIZABLE sender does not prevent claims from writing positions until
-- it ends.

CREATE OR ALTER FUNCTION mq_internal.is_ring (@type nvarchar(400))
RETURNS bit
AS
BEGIN
    RETURN CASE WHEN EXISTS (SELECT * FROM mq.ring WITH (READUNCOMMITTED, FORCESEEK, INDEX (ring_newest)) WHERE type = @type) THEN 1 ELSE 0 END;
END;
GO
