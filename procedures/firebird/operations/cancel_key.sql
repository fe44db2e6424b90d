-- cancel_key: cancel the live message that has a dedup_key, as cancel does.
-- Arguments:   p_type, p_dedup_key (1 to 200 characters each)
-- Returns:     affected, state (as from cancel; NULL: no live message has the key), id (the message that has the key, or had it)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; waits as cancel does
-- Example:     SELECT * FROM mq_cancel_key('reminder', 'order-17');
CREATE OR ALTER PROCEDURE mq_cancel_key (
    p_type mq_argument,
    p_dedup_key mq_argument
)
RETURNS (affected bigint, state varchar(1) CHARACTER SET ASCII, id bigint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_name('dedup_key', p_dedup_key, 0);
    EXECUTE PROCEDURE imq_require_read_committed;
    affected = 0;
    SELECT d.id FROM mq_dedup AS d WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key INTO id;
    IF (id IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_cancel_one(id) RETURNING_VALUES affected, state;
    SUSPEND;
END
