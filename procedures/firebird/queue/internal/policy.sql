-- policy: the settings of a type, or the defaults where it has none of its own.
-- Arguments:   p_type
-- Returns:     one row: the settings as in mq_queue, without the type
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT lease_seconds FROM mq_policy('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_policy (
    p_type mq_name
)
RETURNS (
    lease_seconds integer,
    max_attempts integer,
    backoff_seconds integer,
    backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET ASCII,
    ordered smallint,
    notify smallint,
    paused smallint
)
AS
BEGIN
    SELECT lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, paused
    FROM mq_queue WHERE type = :p_type
    INTO lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, paused;
    IF (paused IS NULL) THEN
        SELECT lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, paused
        FROM mq_queue WHERE type = ''
        INTO lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, paused;
    SUSPEND;
END^

SET TERM ; ^
