-- number_row: return the statement that numbers one row of a feed, unless another transaction has locked the row.
-- Arguments:   p_cursor (a cursor name that the statement does not use yet)
-- Returns:     the text for publish_feed, with the placeholders {"table"} and {"sync"}. It gives the row at v_place the
--              number v_last + 1 and adds 1 to v_last; v_given is the number that the row has afterwards
--
-- On 5.0 it also skips rows that a writer has changed and committed since this call began. Before, such a row makes the
-- engine restart the whole call, and the statement has its own block: a lock conflict undoes only that block.
CREATE OR ALTER FUNCTION imq_number_row (p_cursor varchar(31) CHARACTER SET ASCII)
RETURNS mq_argument
AS
BEGIN
    /*!5 RETURN REPLACE(q'[FOR SELECT t.{"sync"} FROM {"table"} AS t
            WHERE t.RDB$DB_KEY = :v_place AND t.{"sync"} IS NULL
            WITH LOCK SKIP LOCKED
            INTO v_given AS CURSOR {"cursor"}
        DO
        BEGIN
            UPDATE {"table"} AS t SET t.{"sync"} = :v_last + 1 WHERE CURRENT OF {"cursor"} RETURNING t.{"sync"} INTO v_given;
            v_last = v_last + 1;
        END]', '{"cursor"}', p_cursor); */
    RETURN q'[BEGIN
            UPDATE {"table"} AS t SET t.{"sync"} = :v_last + 1
            WHERE t.RDB$DB_KEY = :v_place AND t.{"sync"} IS NULL
            RETURNING t.{"sync"} INTO v_given;
            IF (ROW_COUNT = 1) THEN
                v_last = v_last + 1;
            ELSE
                v_given = v_last;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_given = v_last;
        END]';
END
