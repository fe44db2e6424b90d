-- find_one_column: the one column of a table that an argument names.
-- Arguments: @argument (its name in the contract), @object_id (the table), @name
-- Returns: @column: its name, quoted, as in the catalog
CREATE OR ALTER PROCEDURE mq_internal.find_one_column
    @argument varchar(200), @object_id int, @name nvarchar(max), @column nvarchar(300) OUTPUT
AS
BEGIN
    DECLARE @columns nvarchar(4000);
    EXEC mq_internal.find_columns @argument, @object_id, @name, @columns OUTPUT;
    IF (SELECT COUNT(*) FROM mq_internal.split_names(@name, N',')) <> 1
        EXEC mq_internal.raise_error 'invalid_argument', N'{}: must name exactly one column', @argument;
    SET @column = @columns;
END;
