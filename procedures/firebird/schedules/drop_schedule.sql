-- drop_schedule: delete a schedule; messages that it has sent stay.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there was none
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; a NO WAIT transaction fails with a lock conflict while a claim is sending the
--              schedule's message
-- Example:     SELECT * FROM mq_drop_schedule('nightly');

CREATE OR ALTER PROCEDURE mq_drop_schedule (
    p_name mq_argument
)
RETURNS (affected bigint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    BEGIN
        DELETE FROM mq_schedule WHERE name = :p_name;
        affected = ROW_COUNT;
        -- 3.0: another call has just deleted it.
        WHEN GDSCODE random, GDSCODE no_cur_rec DO
            affected = 0;
    END
    SUSPEND;
END
