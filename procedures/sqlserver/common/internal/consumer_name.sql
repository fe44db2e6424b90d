-- consumer_name: a name for a process that passed none: its application name, or else its login, and its session id.
CREATE OR ALTER FUNCTION mq_internal.consumer_name (@name nvarchar(400))
RETURNS nvarchar(400)
AS
BEGIN
    RETURN COALESCE(@name, CONCAT(LEFT(COALESCE(NULLIF(APP_NAME(), N''), ORIGINAL_LOGIN()), 180), N'/', @@SPID));
END;
