-- number_row: return the statement that numbers one row of a feed, unless another transaction has locked the row.
--
-- This is the body for Firebird 5.0 and later; number_row.sql is for older versions. It also skips rows that a writer has
-- changed and committed since this call began. With the other body such a row makes the engine restart the whole call.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_number_row (p_cursor varchar(31) CHARACTER SET ASCII)
RETURNS mq_argument
AS
BEGIN
    RETURN REPLACE(q'[FOR SELECT t.{"sync"} FROM {"table"} AS t
            WHERE t.RDB$DB_KEY = :v_place AND t.{"sync"} IS NULL
            WITH LOCK SKIP LOCKED
            INTO v_given AS CURSOR {"cursor"}
        DO
        BEGIN
            UPDATE {"table"} AS t SET t.{"sync"} = :v_last + 1 WHERE CURRENT OF {"cursor"} RETURNING t.{"sync"} INTO v_given;
            v_last = v_last + 1;
        END]', '{"cursor"}', p_cursor);
END^
SET TERM ; ^
