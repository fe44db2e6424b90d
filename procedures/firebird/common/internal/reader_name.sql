-- reader_name: the name of a process that gave none: its application, else its user, with its connection number.
-- Arguments:   p_name (NULL: make one up)
-- Returns:     a name of at most 200 characters
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT RDB$SET_CONTEXT('USER_SESSION', 'MQ_APPLICATION', 'billing'), mq_reader_name(NULL) FROM rdb$database;

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_reader_name (
    p_name mq_argument
)
RETURNS mq_name
AS
DECLARE v_application varchar(8191) CHARACTER SET UTF8;
BEGIN
    IF (p_name IS NOT NULL) THEN
        RETURN p_name;
    BEGIN
        v_application = RDB$GET_CONTEXT('USER_SESSION', 'MQ_APPLICATION');
    WHEN ANY DO
        -- The context holds bytes: a client that is not UTF8 may have put there what is none.
        v_application = NULL;
    END
    IF (COALESCE(CHAR_LENGTH(v_application), 0) = 0) THEN
        v_application = CURRENT_USER;
    RETURN LEFT(v_application, 180) || '/' || CURRENT_CONNECTION;
END^

SET TERM ; ^
