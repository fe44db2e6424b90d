-- index_condition: whether an index is partial: it holds only some of the table's rows.
-- Arguments:   p_index (its name as in the catalog)
-- Returns:     1 or 0
--
-- This variant is for Firebird 3.0 and 4.0, which have no partial indexes. index_condition.5.sql replaces it from 5.0 on.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_index_condition (p_index varchar(63) CHARACTER SET UTF8)
RETURNS smallint
AS
BEGIN
    RETURN 0;
END^
SET TERM ; ^
