-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 wrong_kind (or not a ring, see set_queue)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_wraparound('crawl', 10, 'worker-1');
--
-- Low-water mark. A claim that finds too few messages continues at the lowest id. While another transaction keeps a
-- snapshot open, the claim reads all dead rows before the first ready message. The scan for due messages does the same. If
-- that took long, the next claims start there until the mark expires: see make_ready. Until then, claims that read past many
-- more ids move it. A message that a sender commits late below the mark waits for the next full scan.

CREATE OR ALTER PROCEDURE mq_claim_wraparound (
    p_type mq_argument,
    p_size bigint = NULL,
    p_consumer mq_argument = NULL,
    p_lease_seconds bigint = NULL,
    p_after_id bigint = NULL
)
RETURNS (
    id bigint, type mq_name, body mq_text, headers mq_text, priority integer, group_key mq_name, dedup_key mq_name,
    attempt integer, created_at timestamp, source mq_name, batch_key mq_key, lease_until timestamp,
    max_attempts integer, run_at timestamp, extra mq_text
)
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
DECLARE v_paused smallint; DECLARE v_ring smallint; DECLARE v_full_scan smallint;
DECLARE v_seconds integer; DECLARE v_max_active integer; DECLARE v_rate integer; DECLARE v_rate_seconds integer;
DECLARE v_size integer; DECLARE v_most integer;
DECLARE v_consumer mq_name;
DECLARE v_n bigint; DECLARE v_from bigint; DECLARE v_mark_id bigint; DECLARE v_old_n bigint; DECLARE v_after bigint;
DECLARE v_lowest_id bigint;
DECLARE v_tries integer = 2;
DECLARE v_begun timestamp;
DECLARE v_scanned bigint = 0;
DECLARE v_count integer; DECLARE v_ahead integer;
DECLARE v_last bigint; DECLARE v_more_last bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 1);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_read_committed;
    SELECT paused, ring, COALESCE(:p_lease_seconds, lease_seconds), max_active, rate, rate_seconds, max_attempts
    FROM imq_policy(:p_type) INTO v_paused, v_ring, v_seconds, v_max_active, v_rate, v_rate_seconds, v_most;
    IF (v_ring = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('wrong_kind', 'type: ' || p_type || ' is not a ring; use mq_set_option('''
            || p_type || ''', ''ring'', ''1'')');
    IF (v_paused = 1) THEN
        EXIT;
    v_size = COALESCE(p_size, 1);
    IF (v_max_active + v_rate > 0) THEN
        EXECUTE PROCEDURE imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds) RETURNING_VALUES v_size;
    IF (v_size = 0) THEN
        EXIT;
    v_consumer = imq_consumer_name(p_consumer);
    batch_key = LOWER(UUID_TO_CHAR(GEN_UUID()));
    EXECUTE PROCEDURE imq_make_ready(p_type, v_size, 0, 1, 0)
        RETURNING_VALUES v_now, v_n, v_scanned_at, v_from, v_full_scan, v_promoted_to, v_lowered_to;
    IF (EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type AND r.lane >= '0' PLAN (r INDEX (mq_ready_lane)))) THEN
        EXECUTE PROCEDURE imq_set_lanes(p_type, 0, MAXVALUE(2 * v_size, 100));

    SELECT n, after_id FROM mq_ring WHERE type = :p_type AND consumer = :v_consumer
    ORDER BY type DESC, consumer DESC, n DESC, after_id DESC ROWS 1
    INTO v_old_n, v_after;
    v_after = COALESCE(p_after_id, v_after, 0);
    v_mark_id = v_from;
    EXECUTE PROCEDURE imq_take_ring(batch_key, 0, v_size, p_type, MAXVALUE(v_after, v_from), 9223372036854775807)
        RETURNING_VALUES v_count, v_last;
    v_ahead = v_count;
    IF (v_count < v_size) THEN
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
            WHEN v_count > 0 THEN MAXVALUE(v_after, v_from)
            ELSE GEN_ID(mq_message_id, 0)
        END;
        IF (v_lowest_id IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_take_ring(batch_key, v_count, v_size, p_type, v_lowest_id - 1, v_after)
                RETURNING_VALUES v_count, v_more_last;
        v_last = COALESCE(v_more_last, v_last);
    END
    -- A lowered mark is replaced too: otherwise each message that is put back would add a row.
    IF (v_full_scan = 1 AND (v_scanned >= c_long OR EXTRACT(YEAR FROM v_scanned_at) = 1900)) THEN
        v_scanned_at = DATEADD(IIF(v_scanned >= c_long, MINVALUE(10 * v_scanned, c_longest), -60000) MILLISECOND TO v_now);
    ELSE IF (v_mark_id = 0 OR v_count = 0 OR v_from <= v_mark_id + c_stride) THEN
        v_scanned_at = NULL;
    IF (v_scanned_at IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_renew_marks(p_type, v_n, v_scanned_at, v_promoted_to,
            '000001900-01-01 00:00:00.0000' || LPAD(v_from, 19, '0'), '1900-01-01', v_lowered_to, v_full_scan);
    IF (v_count = 0) THEN
        EXIT;
    IF (v_rate > 0) THEN
        EXECUTE PROCEDURE imq_spend(p_type, v_count, v_rate, v_rate_seconds);
    EXECUTE PROCEDURE imq_save_position(p_type, v_consumer, v_old_n, IIF(p_after_id IS NOT NULL OR v_count > v_ahead, 1, 0), v_last,
        NULL);
    EXECUTE PROCEDURE imq_write_batch(batch_key, p_type, v_consumer, v_seconds, NULL, NULL) RETURNING_VALUES lease_until;
    -- Sort narrow rows first, then join: the sort carries no bodies.
    FOR SELECT c.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, c.attempt, m.created_at, m.source,
            COALESCE(m.max_attempts, :v_most), m.run_at
        FROM (SELECT id, attempt FROM mq_claimed WHERE batch_key = :batch_key ORDER BY n) AS c
        LEFT JOIN mq_message AS m ON m.id = c.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source,
            max_attempts, run_at
    DO
        SUSPEND;
END
