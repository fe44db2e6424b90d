-- clean_buckets: unblock stuck groups for some seconds after a change of limits per group.
-- Transaction: joins the caller's, which is NO WAIT
--
-- The first claim of each second calls this before it takes messages: until the claim ends, its messages are in no batch
-- and would look stuck.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_clean_buckets (
    p_type mq_name
)
AS
-- Claims that began with the old limits have committed by then.
DECLARE c_seconds integer = 10;
DECLARE v_changed_at timestamp;
DECLARE v_repaired integer;
BEGIN
    SELECT changed_at FROM mq_queue WHERE type = :p_type INTO v_changed_at;
    IF (mq_utc_now() BETWEEN v_changed_at AND DATEADD(c_seconds SECOND TO v_changed_at)) THEN
        EXECUTE PROCEDURE imq_unblock_groups(p_type) RETURNING_VALUES v_repaired;
END^

SET TERM ; ^
