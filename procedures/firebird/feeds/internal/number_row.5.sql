-- number_row: the statement that numbers a row of a feed, unless another transaction has locked it.
-- Arguments:   p_table, p_sync (both for SQL), p_cursor (a name that no other cursor has there)
-- Returns:     its text, for publish_feed: of the row at v_place it makes v_last + 1 the number, and adds 1 to v_last; v_given is
--              what the row has then
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_number_row('"ORDERS"', '"SYNC"', 'c1') FROM rdb$database;
--
-- This is the body for Firebird 5.0 and later, beside number_row.sql: a row that a writer has changed and committed since this
-- call began is passed over as well, where the other body makes the engine begin the whole call again.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_number_row (
    p_table varchar(130) CHARACTER SET UTF8,
    p_sync varchar(130) CHARACTER SET UTF8,
    p_cursor varchar(31) CHARACTER SET ASCII
)
RETURNS mq_argument
AS
BEGIN
    RETURN 'FOR SELECT t.' || p_sync || ' FROM ' || p_table || ' AS t WHERE t.RDB$DB_KEY = :v_place AND t.' || p_sync
        || ' IS NULL WITH LOCK SKIP LOCKED INTO v_given AS CURSOR ' || p_cursor
        || ' DO BEGIN UPDATE ' || p_table || ' AS t SET t.' || p_sync || ' = :v_last + 1 WHERE CURRENT OF ' || p_cursor
        || ' RETURNING t.' || p_sync || ' INTO v_given; v_last = v_last + 1; END';
END^

SET TERM ; ^
