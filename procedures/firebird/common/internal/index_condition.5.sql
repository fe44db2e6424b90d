-- index_condition: whether an index is partial: it holds only some of the table's rows.
-- This variant for Firebird 5.0 and later replaces index_condition.sql: these versions have partial indexes.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_index_condition (p_index varchar(63) CHARACTER SET UTF8)
RETURNS smallint
AS
BEGIN
    RETURN (SELECT IIF(rdb$condition_blr IS NULL, 0, 1) FROM rdb$indices WHERE rdb$index_name = :p_index);
END^
SET TERM ; ^
