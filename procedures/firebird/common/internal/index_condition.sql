-- index_condition: whether an index holds some of a table's rows only.
-- Arguments:   p_index (as the catalog has it)
-- Returns:     1 or 0
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_index_condition('ORDERS_OPEN') FROM rdb$database;
--
-- This is the body for Firebird 3.0 and 4.0, where all indexes hold all rows; index_condition.5.sql that for later versions.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_index_condition (
    p_index varchar(63) CHARACTER SET UTF8
)
RETURNS smallint
AS
BEGIN
    RETURN 0;
END^

SET TERM ; ^
