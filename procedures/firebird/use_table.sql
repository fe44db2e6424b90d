-- use_table: run a statement on a user's table: this procedure alone has to have the rights on it.
-- Arguments:   p_statement (a SELECT or an EXECUTE BLOCK with three parameters), p_from, p_to, p_size (their values; all
--              NULL: the statement has none; a p_size of 0: it has no rows either)
-- Returns:     its rows, which have three columns: number, key, row
-- Errors:      those of the statement
-- Transaction: joins the caller's
-- Example:     GRANT SELECT, UPDATE ON orders TO PROCEDURE mq_use_table;
--
-- CALLER PRIVILEGES are those of this procedure, besides those of the user. A statement that changes rows which others change too
-- has no rows of its own: when Firebird 5.0 began one again whose rows were fetched, now and then the call ended in a request
-- synchronization error.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_use_table (
    p_statement mq_text,
    p_from bigint,
    p_to bigint,
    p_size bigint
)
RETURNS (
    number bigint,
    "KEY" mq_text,
    "ROW" mq_text
)
AS
BEGIN
    IF (p_size = 0) THEN
        EXECUTE STATEMENT p_statement WITH CALLER PRIVILEGES;
    ELSE IF (p_from IS NULL AND p_to IS NULL AND p_size IS NULL) THEN
        FOR EXECUTE STATEMENT p_statement WITH CALLER PRIVILEGES INTO number, "KEY", "ROW" DO
            SUSPEND;
    ELSE
        FOR EXECUTE STATEMENT (p_statement) (p_from, p_to, p_size) WITH CALLER PRIVILEGES INTO number, "KEY", "ROW" DO
            SUSPEND;
END^

SET TERM ; ^
