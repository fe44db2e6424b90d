-- index_condition: whether an index holds some of a table's rows only.
-- Arguments:   p_index (as the catalog has it)
-- Returns:     1 or 0
-- Errors:      none
-- Transaction: reads the catalog only
-- Example:     SELECT mq_index_condition('ORDERS_OPEN') FROM rdb$database;
--
-- This is the body for Firebird 5.0 and later, beside index_condition.sql: they have partial indexes.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_index_condition (
    p_index varchar(63) CHARACTER SET UTF8
)
RETURNS smallint
AS
BEGIN
    RETURN (SELECT IIF(rdb$condition_blr IS NULL, 0, 1) FROM rdb$indices WHERE rdb$index_name = :p_index);
END^

SET TERM ; ^
