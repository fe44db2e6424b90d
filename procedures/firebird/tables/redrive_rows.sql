-- redrive_rows: retry dead rows of a polling table, with their attempts set back to 0.
-- Arguments:   p_name (1 to 200 characters), p_id (of one row, as peek_rows lists it; NULL: all, those that died first),
--              p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, preferably READ COMMITTED NO WAIT; claims of the table wait for its end
-- Example:     SELECT * FROM mq_redrive_rows('orders');

CREATE OR ALTER PROCEDURE mq_redrive_rows (
    p_name mq_argument,
    p_id bigint = NULL,
    p_size bigint = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_n bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_lock_polled(p_name, NULL, 2000) RETURNING_VALUES v_n;
    DELETE FROM mq_polled_write;
    IF (p_id IS NOT NULL) THEN
        INSERT INTO mq_polled_write (id, kind)
        SELECT id, 'T' FROM mq_polled_row WHERE id = :p_id AND name = :p_name AND state = 'E';
    ELSE
        INSERT INTO mq_polled_write (id, kind)
        SELECT p.id, 'T' FROM mq_polled_row AS p WHERE p.name = :p_name AND p.state = 'E'
        PLAN (p ORDER mq_polled_row_due)
        ORDER BY p.name, p.state, p.run_at, p.id
        ROWS COALESCE(:p_size, 1000);
    EXECUTE PROCEDURE imq_settle_rows(p_name) RETURNING_VALUES v_n, v_n, v_n, v_n, affected;
    SUSPEND;
END
