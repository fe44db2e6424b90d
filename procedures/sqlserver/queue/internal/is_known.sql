-- is_known: whether a queue has settings, messages in any state, or marks of messages that were claimed from it.
-- Transaction: reads only; never waits: a row that is not committed counts
CREATE OR ALTER FUNCTION mq_internal.is_known (@type nvarchar(400))
RETURNS smallint
AS
BEGIN
    IF EXISTS (SELECT * FROM mq.queue WITH (READUNCOMMITTED) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.ready WITH (READUNCOMMITTED) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.mark WITH (READUNCOMMITTED) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.delayed WITH (READUNCOMMITTED) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.batch WITH (READUNCOMMITTED, FORCESEEK, INDEX (batch_lease)) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.dead WITH (READUNCOMMITTED, FORCESEEK, INDEX (dead_age)) WHERE type = @type)
        OR EXISTS (SELECT * FROM mq.archive WITH (READUNCOMMITTED, FORCESEEK, INDEX (archive_type)) WHERE type = @type)
        RETURN 1;
    RETURN 0;
END;
