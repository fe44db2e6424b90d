-- claim_ring: claim messages of a ring in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_consumer (whose position it is), p_after_id (NULL: where the consumer stopped)
-- Returns:     batch_key and n (number of messages; 0: nothing is ready, no key); id and attempt of the message, if p_size is 1
--
-- Low-water mark. A claim that finds too few messages continues at the lowest id. While another transaction keeps a
-- snapshot open, the claim reads all dead rows before the first ready message. The scan for due messages does the same. If
-- that took long, the next claims start there until the mark expires: see make_ready. Until then, claims that read past many
-- more ids move it. A message that a sender commits late below the mark waits for the next full scan.
CREATE OR ALTER PROCEDURE imq_claim_ring (
    p_type mq_name, p_size integer, p_consumer mq_name, p_after_id bigint
)
RETURNS (batch_key mq_key, n integer, id bigint, attempt smallint)
AS
-- Milliseconds. A longer scan leaves a low-water mark; reading 2,000 dead rows takes 2.
DECLARE c_long integer = 2;
-- Milliseconds. A mark holds for ten times as long as its scans took, at most this long: full scans then take a tenth of
-- the time.
DECLARE c_longest integer = 5000;
-- Move a mark that still holds when the lowest message is this many ids after it: each dead row costs two pages.
DECLARE c_stride integer = 100;
DECLARE v_now timestamp; DECLARE v_scanned_at timestamp; DECLARE v_promoted_to timestamp;
DECLARE v_lowered_to timestamp;
DECLARE v_full_scan smallint;
DECLARE v_n bigint; DECLARE v_from bigint; DECLARE v_mark_id bigint; DECLARE v_old_n bigint; DECLARE v_after bigint;
DECLARE v_lowest_id bigint;
DECLARE v_tries integer = 2;
DECLARE v_begun timestamp;
DECLARE v_scanned bigint = 0;
DECLARE v_ahead integer;
DECLARE v_last bigint; DECLARE v_more_last bigint;
BEGIN
    EXECUTE PROCEDURE imq_make_ready(p_type, p_size, 0, 1, 0)
        RETURNING_VALUES v_now, v_n, v_scanned_at, v_from, v_full_scan, v_promoted_to, v_lowered_to;
    IF (EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type AND r.lane >= '0' PLAN (r INDEX (mq_ready_lane)))) THEN
        EXECUTE PROCEDURE imq_set_lanes(p_type, 0, MAXVALUE(2 * p_size, 100));

    SELECT n, after_id FROM mq_ring WHERE type = :p_type AND consumer = :p_consumer
    ORDER BY type DESC, consumer DESC, n DESC, after_id DESC ROWS 1
    INTO v_old_n, v_after;
    v_after = COALESCE(p_after_id, v_after, 0);
    v_mark_id = v_from;
    EXECUTE PROCEDURE imq_take_ring(NULL, 0, p_size, p_type, MAXVALUE(v_after, v_from), 9223372036854775807)
        RETURNING_VALUES batch_key, n, v_last, attempt;
    v_ahead = n;
    IF (n < p_size) THEN
    BEGIN
        -- Measure twice: planning and cold pages are slow only the first time.
        WHILE (v_tries > 0) DO
        BEGIN
            v_begun = mq_utc_now();
            v_lowest_id = NULL;
            SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.lane IS NULL AND r.id > :v_from AND r.id <= :v_after
            PLAN (r ORDER mq_ready_lane) ORDER BY r.type, r.lane, r.id ROWS 1
            INTO v_lowest_id;
            IF (v_full_scan = 1 AND EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at <= :v_now)) THEN
                v_promoted_to = '1900-01-01';
            v_scanned = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
            v_tries = IIF(v_scanned < c_long, 0, v_tries - 1);
        END
        v_from = CASE
            WHEN v_lowest_id IS NOT NULL THEN v_lowest_id - 1
            WHEN n > 0 THEN MAXVALUE(v_after, v_from)
            ELSE GEN_ID(mq_message_id, 0)
        END;
        IF (v_lowest_id IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_take_ring(batch_key, n, p_size, p_type, v_lowest_id - 1, v_after)
                RETURNING_VALUES batch_key, n, v_more_last, attempt;
        v_last = COALESCE(v_more_last, v_last);
    END
    -- A lowered mark is replaced too: otherwise each message that is put back would add a row.
    IF (v_full_scan = 1 AND (v_scanned >= c_long OR EXTRACT(YEAR FROM v_scanned_at) = 1900)) THEN
        v_scanned_at = DATEADD(IIF(v_scanned >= c_long, MINVALUE(10 * v_scanned, c_longest), -60000) MILLISECOND TO v_now);
    ELSE IF (v_mark_id = 0 OR n = 0 OR v_from <= v_mark_id + c_stride) THEN
        v_scanned_at = NULL;
    IF (v_scanned_at IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to,
            '000001900-01-01 00:00:00.0000' || LPAD(v_from, 19, '0'), '1900-01-01', v_lowered_to, v_full_scan);
    IF (n > 0) THEN
        EXECUTE PROCEDURE imq_save_position(p_type, p_consumer, v_old_n, IIF(p_after_id IS NOT NULL OR n > v_ahead, 1, 0), v_last,
            NULL);
    id = IIF(p_size = 1, v_last, NULL);
    attempt = IIF(p_size = 1, attempt, NULL);
END
