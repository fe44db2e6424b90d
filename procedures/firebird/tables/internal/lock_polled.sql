-- lock_polled: lock a polling table's row until the transaction ends; claims of one table wait for each other.
-- Arguments:   p_name, p_consumer (the claiming consumer; NULL: not a claim), p_milliseconds (how long to try)
-- Returns:     locked: 1; 0 when p_consumer is given and another transaction held the row for that long
--
-- The lock must return what another claim has committed since this call began: see lock_row. Without a status, and with rows
-- that stay, an outdated low-water mark would skip rows for good.
CREATE OR ALTER PROCEDURE imq_lock_polled (p_name mq_name, p_consumer mq_name, p_milliseconds integer)
RETURNS (locked integer)
AS
BEGIN
    EXECUTE PROCEDURE imq_lock_row('polled', p_name, NULL, IIF(p_consumer IS NULL, NULL, p_milliseconds))
    RETURNING_VALUES locked;
    -- When the engine is about to restart the call, queries find no rows.
    IF (locked IS NULL AND NOT EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'name: no table is adopted as ' || p_name);
    locked = IIF(locked = 1, 1, 0);
    IF (locked = 1) THEN
        UPDATE mq_polled SET consumer = :p_consumer WHERE name = :p_name AND consumer IS DISTINCT FROM :p_consumer AND :p_consumer IS NOT NULL;
END
