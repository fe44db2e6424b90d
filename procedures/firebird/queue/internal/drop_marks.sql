-- drop_marks: delete low-water marks that newer ones have replaced.
-- Arguments:   p_type, p_n (those before this number)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_drop_marks('email', 17);
--
-- Once a second, for two claims that delete the same mark cost one of them a second run. What another claim is deleting stays
-- until a later one passes by: they are few and never read.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_marks (
    p_type mq_name,
    p_n bigint
)
AS
DECLARE v_n bigint;
BEGIN
    FOR SELECT n FROM mq_mark WHERE type = :p_type AND n < :p_n INTO v_n AS CURSOR old DO
    BEGIN
        DELETE FROM mq_mark WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_n = NULL;
    END
END^

SET TERM ; ^
