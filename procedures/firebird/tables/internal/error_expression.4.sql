-- error_expression: return the expression for the text of a caught error, for a WHEN in dynamic SQL.
--
-- This is the body for Firebird 4.0 and later; error_expression.sql is for 3.0.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_error_expression
RETURNS varchar(200) CHARACTER SET UTF8
AS
BEGIN
    RETURN 'LEFT(COALESCE(RDB$ERROR(MESSAGE), ''SQLSTATE '' || SQLSTATE), 4000)';
END^
SET TERM ; ^
