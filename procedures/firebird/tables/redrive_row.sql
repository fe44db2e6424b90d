-- redrive_row: retry one dead row of a polling table, with its attempts reset to 0.
-- Arguments:   p_name (1 to 200 characters), p_id (of the row, as peek_rows lists it)
-- Returns:     affected: 1; 0 when the row is not dead, or was changed by others
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, preferably READ COMMITTED NO WAIT; claims of the table wait for its end
-- Example:     SELECT * FROM mq_redrive_row('orders', 17);

CREATE OR ALTER PROCEDURE mq_redrive_row (
    p_name mq_argument,
    p_id bigint
)
RETURNS (affected bigint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL; redrive_rows retries all dead rows');
    EXECUTE PROCEDURE imq_redrive_polled(p_name, p_id, 1) RETURNING_VALUES affected;
    SUSPEND;
END
