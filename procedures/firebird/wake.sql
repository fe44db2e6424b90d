-- wake: tell the consumers that wait for a type.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: the event is posted when the caller commits, once however often this was called
-- Example:     a client registers for the event 'mq_email', then EXECUTE PROCEDURE mq_wake('email');
--
-- The name of an event has room for 127 bytes, and clients cut the blanks at its end: types that begin with the same 30
-- characters wake each other's consumers, who then find nothing.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_wake (
    p_type mq_name
)
AS
BEGIN
    POST_EVENT TRIM(TRAILING FROM 'mq_' || LEFT(p_type, 30));
END^

SET TERM ; ^
