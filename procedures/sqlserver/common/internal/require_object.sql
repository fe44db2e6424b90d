-- require_object: refuse what mq_internal.read_object cannot read.
-- Arguments:   @object, @argument (the error's text begins with it)
CREATE OR ALTER PROCEDURE mq_internal.require_object
    @object nvarchar(max),
    @argument nvarchar(200)
AS
BEGIN
    IF EXISTS (SELECT * FROM mq_internal.read_object(@object) WHERE fits = 0)
        EXEC mq_internal.raise_error 'invalid_argument',
            N'{}: must be a JSON object with unique names, no nested values and no NUL character', @argument;
END;
