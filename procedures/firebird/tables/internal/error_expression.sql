-- error_expression: return the expression for the text of a caught error, for a WHEN in dynamic SQL.
-- Returns:     the expression; on 3.0 PSQL cannot read an error's text
CREATE OR ALTER FUNCTION imq_error_expression
RETURNS varchar(200) CHARACTER SET UTF8
AS
BEGIN
    /*!4 RETURN 'LEFT(COALESCE(RDB$ERROR(MESSAGE), ''SQLSTATE '' || SQLSTATE), 4000)'; */
    RETURN '''the table refuses it: SQLSTATE '' || SQLSTATE || '', error '' || GDSCODE';
END
