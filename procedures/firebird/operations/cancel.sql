-- cancel: delete one new or dead message, or cancel the attempt of an active one.
-- Arguments:   p_id (the message)
-- Returns:     affected (1; 0 when nothing changed), state (before the call: N or E: it is deleted; A: it is marked, and deleted when
--              its attempt ends; C: archived; N or E with affected 0: another transaction is claiming or changing
--              it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; never waits for a claim; waits up to two
--              seconds for a call that is ending the attempt, or a transaction that has saved a step
-- Example:     SELECT * FROM mq_cancel(17);

CREATE OR ALTER PROCEDURE mq_cancel (
    p_id bigint
)
RETURNS (affected bigint, state varchar(1) CHARACTER SET ASCII)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_cancel_one(p_id) RETURNING_VALUES affected, state;
    SUSPEND;
END
