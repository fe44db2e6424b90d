-- promote_ring: rescue expired claims and promote due messages for a claim of a ring.
-- Arguments:   p_type, p_full_scan (1: expired claims as well), p_promoted_to (nothing due before is left to promote), p_size
--              (of the claim)
-- Returns:     all_promoted (0: more may be due), milliseconds (how long it took to find out)
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_promote_ring('crawl', 1, '1900-01-01', 10) RETURNING_VALUES v_all_promoted, v_milliseconds;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_promote_ring (
    p_type mq_name,
    p_full_scan smallint,
    p_promoted_to timestamp,
    p_size integer
)
RETURNS (
    all_promoted smallint,
    milliseconds bigint
)
AS
DECLARE c_long_scan integer = 2;
DECLARE v_now timestamp;
DECLARE v_expired smallint = 0;
DECLARE v_due smallint = 0;
DECLARE v_begun timestamp;
DECLARE v_tries integer = 1;
DECLARE v_moved bigint;
DECLARE v_first timestamp;
BEGIN
    v_now = mq_utc_now();
    all_promoted = 1;
    -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
    WHILE (v_tries <= 2) DO
    BEGIN
        v_begun = mq_utc_now();
        IF (p_full_scan = 1) THEN
            v_expired = IIF(EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now), 1, 0);
        v_due = IIF(EXISTS (
            SELECT * FROM mq_delayed WHERE type = :p_type AND run_at > :p_promoted_to AND run_at <= :v_now
        ), 1, 0);
        milliseconds = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
        v_tries = IIF(milliseconds < c_long_scan, 3, v_tries + 1);
    END
    IF (v_expired = 1) THEN
        EXECUTE PROCEDURE mq_rescue(p_type, 20) RETURNING_VALUES v_moved;
    IF (v_due = 1) THEN
    BEGIN
        EXECUTE PROCEDURE mq_promote(p_type, p_promoted_to, v_now, MAXVALUE(2 * p_size, 100), 0)
            RETURNING_VALUES v_moved, v_first;
        all_promoted = IIF(v_moved < MAXVALUE(2 * p_size, 100), 1, 0);
    END
END^

SET TERM ; ^
