-- redrive_polled: retry dead rows of a polling table, with their attempts reset to 0.
-- Arguments:   p_name, p_id (of one row; NULL: up to p_size rows, those that died first), p_size
-- Returns:     affected: rows that will be retried
-- Transaction: joins the caller's; claims of the table wait for its end
CREATE OR ALTER PROCEDURE imq_redrive_polled (p_name mq_name, p_id bigint, p_size integer)
RETURNS (affected bigint)
AS
DECLARE v_n bigint;
BEGIN
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
        ROWS :p_size;
    EXECUTE PROCEDURE imq_settle_rows(p_name) RETURNING_VALUES v_n, v_n, v_n, v_n, affected;
END
