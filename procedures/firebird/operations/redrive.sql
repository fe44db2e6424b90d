-- redrive: retry one dead letter, with its attempts reset to 0.
-- Arguments:   p_id (the message)
-- Returns:     affected: 1; 0 when the message is not a dead letter, or another call is changing it
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT
-- Example:     SELECT * FROM mq_redrive(17);

CREATE OR ALTER PROCEDURE mq_redrive (
    p_id bigint
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name;
DECLARE v_grouped smallint;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL; redrive_all redrives all of a queue');
    EXECUTE PROCEDURE imq_require_read_committed;
    affected = 0;
    BEGIN
        DELETE FROM mq_dead WHERE id = :p_id RETURNING type INTO v_type;
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        v_type = NULL;
    END
    IF (v_type IS NOT NULL) THEN
    BEGIN
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        EXECUTE PROCEDURE imq_put_back(v_type, p_id, 0, v_grouped);
        EXECUTE PROCEDURE imq_lower_mark(v_type);
        EXECUTE PROCEDURE imq_wake(v_type);
        affected = 1;
    END
    SUSPEND;
END
