-- error_expression: return the expression for the text of a caught error, for a WHEN in dynamic SQL.
-- Returns:     the expression
--
-- This is the body for Firebird 3.0, where PSQL cannot read an error's text; error_expression.4.sql is for later versions.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_error_expression
RETURNS varchar(200) CHARACTER SET UTF8
AS
BEGIN
    RETURN '''the table refuses it: SQLSTATE '' || SQLSTATE || '', error '' || GDSCODE';
END^
SET TERM ; ^
