-- make_ready: what a claim does first: read the low-water mark; in a full scan rescue expired claims and send due schedules;
--             promote due messages.
-- Arguments:   p_type, p_size (of the claim), p_grouped (the policy), p_ring (1: called by claim_ring), p_take (1: by
--              take_batch)
-- Returns:     now; of the mark n, scanned_at and low_id (a ring has no ready message up to this id); full_scan (1: the marks do
--              not hold now); promoted_to (new value); lowered_to (the earliest run_at of the promoted messages)
CREATE OR ALTER PROCEDURE imq_make_ready (
    p_type mq_name, p_size integer, p_grouped smallint, p_ring smallint, p_take smallint
)
RETURNS (
    now timestamp, n bigint, scanned_at timestamp, low_id bigint, full_scan smallint, promoted_to timestamp,
    lowered_to timestamp
)
AS
DECLARE c_long_ago timestamp = '1900-01-01';
DECLARE v_promote integer;
DECLARE v_moved bigint;
DECLARE v_first timestamp;
BEGIN
    now = mq_utc_now();
    full_scan = 1;
    v_promote = IIF(p_take = 1, p_size, MAXVALUE(2 * p_size, 100));
    lowered_to = CAST('9999-12-31' AS timestamp);
    SELECT n FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1 INTO n;
    IF (n IS NOT NULL) THEN
    BEGIN
        SELECT MIN(scanned_at), MIN(promoted_to), MIN(IIF(run_at = :c_long_ago, id, 0))
        FROM mq_mark WHERE type = :p_type AND n = :n
        INTO scanned_at, promoted_to, low_id;
        -- scanned_at may be up to 6 seconds ahead. More than that, or a promotion in the future, means that the clock was
        -- set back.
        IF (now BETWEEN DATEADD(-6 SECOND TO scanned_at) AND DATEADD(1 SECOND TO scanned_at) AND promoted_to <= now
            AND (p_ring = 0 OR low_id > 0)) THEN
            full_scan = 0;
    END
    IF (full_scan = 1) THEN
    BEGIN
        -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
        IF (EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :now)) THEN
            EXECUTE PROCEDURE imq_rescue(p_type, IIF(p_take = 1, 1, 20)) RETURNING_VALUES v_moved;
        EXECUTE PROCEDURE imq_send_due(p_type, v_promote);
        promoted_to = c_long_ago;
        low_id = 0;
    END
    -- >=: a message may become due in the millisecond of the last claim, after it.
    IF (EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at >= :promoted_to AND run_at <= :now)) THEN
    BEGIN
        EXECUTE PROCEDURE imq_promote(p_type, promoted_to, now, v_promote, p_grouped) RETURNING_VALUES v_moved, v_first;
        lowered_to = COALESCE(v_first, lowered_to);
        promoted_to = IIF(v_moved < v_promote, now, c_long_ago);
        IF (low_id > 0 AND v_moved > 0) THEN
        BEGIN
            EXECUTE PROCEDURE imq_lower_mark(p_type);
            low_id = 0;
        END
    END
    ELSE
        promoted_to = now;
END
