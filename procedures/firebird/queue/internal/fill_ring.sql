-- fill_ring: rescue expired claims, send due schedules and promote due messages of a ring, and measure how long the scan
--            for them took.
-- Arguments:   p_type, p_size (of the claim), p_full_scan (1: also check expired claims and schedules), p_promoted_to (no
--              message due before this time is delayed), p_now, p_long (milliseconds; a longer scan is repeated)
-- Returns:     promoted_to (new value), scanned (the duration of the scan, in milliseconds)
-- Transaction: joins the caller's, which is NO WAIT

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_fill_ring (
    p_type mq_name,
    p_size integer,
    p_full_scan smallint,
    p_promoted_to timestamp,
    p_now timestamp,
    p_long integer
)
RETURNS (
    promoted_to timestamp,
    scanned bigint
)
AS
-- The maximum numbers of messages that a claim promotes and of expired claims that it rescues.
DECLARE c_rescue integer = 20;
DECLARE v_promote integer;
DECLARE v_begun timestamp;
DECLARE v_expired smallint = 0;
DECLARE v_due smallint = 0;
DECLARE v_tries integer = 1;
DECLARE v_moved bigint;
DECLARE v_first timestamp;
BEGIN
    v_promote = MAXVALUE(2 * p_size, 100);
    -- Measure twice: planning and cold pages are slow only the first time.
    WHILE (v_tries <= 2) DO
    BEGIN
        v_begun = mq_utc_now();
        IF (p_full_scan = 1) THEN
            v_expired = IIF(EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :p_now), 1, 0);
        v_due = IIF(EXISTS (
            SELECT * FROM mq_delayed WHERE type = :p_type AND run_at > :p_promoted_to AND run_at <= :p_now
        ), 1, 0);
        scanned = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
        v_tries = IIF(scanned < p_long, 3, v_tries + 1);
    END
    IF (v_expired = 1) THEN
        EXECUTE PROCEDURE imq_rescue(p_type, c_rescue) RETURNING_VALUES v_moved;
    IF (p_full_scan = 1 AND EXISTS (SELECT * FROM mq_schedule WHERE type = :p_type)) THEN
        EXECUTE PROCEDURE imq_send_due(p_type, v_promote);
    -- Stop before now: another transaction may be about to commit a failed message that is already due.
    promoted_to = DATEADD(-1 SECOND TO p_now);
    IF (v_due = 1) THEN
    BEGIN
        EXECUTE PROCEDURE imq_promote(p_type, p_promoted_to, p_now, v_promote, 0) RETURNING_VALUES v_moved, v_first;
        IF (v_moved = v_promote) THEN
            promoted_to = p_promoted_to;
    END
END^

SET TERM ; ^
