-- find_one_column: the one column of a table that an argument names.
-- Arguments:   @argument (its name in the contract), @object_id (the table), @name
-- Returns:     @column: its name, quoted, as in the catalog
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     EXEC mq.find_one_column 'order_column', @object_id, N'id', @column OUTPUT;

CREATE OR ALTER PROCEDURE mq.find_one_column
    @argument varchar(200),
    @object_id int,
    @name nvarchar(max),
    @column nvarchar(300) OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @columns nvarchar(4000);
    EXEC mq.find_columns @argument, @object_id, @name, @columns OUTPUT;
    IF (SELECT COUNT(*) FROM mq.split_names(@name, N',')) <> 1
        EXEC mq.raise_error 'invalid_argument', N'{}: must name exactly one column', @argument;
    SET @column = @columns;
END;
GO
