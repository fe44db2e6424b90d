-- consumer_name: p_name, or a name for NULL: the application, or else the user, and the number of the connection.
CREATE OR ALTER FUNCTION imq_consumer_name (p_name mq_argument)
RETURNS mq_name
AS
DECLARE v_application varchar(8191) CHARACTER SET UTF8;
BEGIN
    IF (p_name IS NOT NULL) THEN
        RETURN p_name;
    BEGIN
        v_application = RDB$GET_CONTEXT('USER_SESSION', 'MQ_APPLICATION');
    WHEN ANY DO
        -- The context holds bytes, which a client with another character set may have set to invalid UTF-8.
        v_application = NULL;
    END
    IF (COALESCE(CHAR_LENGTH(v_application), 0) = 0) THEN
        v_application = CURRENT_USER;
    RETURN LEFT(v_application, 180) || '/' || CURRENT_CONNECTION;
END
