-- tend_groups: mend groups of a queue for some seconds after its limits by group were changed.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_tend_groups('invoice');
--
-- The first claim of each second calls this before it has taken anything: what it takes is in no batch before its end, and would
-- pass for a lock that nobody holds.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_tend_groups (
    p_type mq_name
)
AS
-- Claims that have begun with the old limits have committed by then.
DECLARE c_seconds integer = 10;
DECLARE v_changed_at timestamp;
DECLARE v_mended integer;
BEGIN
    SELECT changed_at FROM mq_queue WHERE type = :p_type INTO v_changed_at;
    IF (mq_utc_now() BETWEEN v_changed_at AND DATEADD(c_seconds SECOND TO v_changed_at)) THEN
        EXECUTE PROCEDURE mq_mend_groups(p_type) RETURNING_VALUES v_mended;
END^

SET TERM ; ^
