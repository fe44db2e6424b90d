-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 queue_is_ordered (or has limits per group)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_wraparound('crawl', 10, 'worker-1');
--
-- Low-water mark. A claim that finds too few messages continues at the lowest id. While another transaction keeps a
-- snapshot open, the claim reads all dead rows before the first ready message. The scan for due messages does the same. If
-- that took long, the next claims start there, for ten times as long as it took, at most 5 seconds. The mark is stored as
-- the position of the reader with the empty name, valid until low_until. A procedure that makes a message ready below the
-- mark calls lower_ring. A message that a sender commits late below the mark waits for the next full scan.
--
-- Half of this file declares arguments, results and variables. Its steps are separate procedures.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_claim_wraparound (
    p_type mq_argument,
    p_size bigint = NULL,
    p_reader mq_argument = NULL,
    p_lease_seconds bigint = NULL,
    p_after_id bigint = NULL
)
RETURNS (
    id bigint,
    type mq_name,
    body mq_text,
    headers mq_text,
    priority integer,
    group_key mq_name,
    dedup_key mq_name,
    attempt integer,
    created_at timestamp,
    source mq_name,
    batch_key mq_key,
    lease_until timestamp
)
AS
-- Milliseconds. A longer scan leaves a low-water mark; reading 2,000 dead rows takes 2.
DECLARE c_long integer = 2;
-- Milliseconds. A mark holds for ten times as long as its scans took, at most this long: full scans then take a tenth of
-- the time.
DECLARE c_longest integer = 5000;
DECLARE v_now timestamp;
DECLARE v_paused smallint;
DECLARE v_grouped smallint;
DECLARE v_seconds integer;
DECLARE v_max_active integer;
DECLARE v_rate integer;
DECLARE v_rate_seconds integer;
DECLARE v_reader mq_name;
DECLARE v_size integer;
DECLARE v_old_n bigint;
DECLARE v_after bigint;
DECLARE v_old_after bigint;
DECLARE v_round bigint;
DECLARE v_lowest_id bigint;
DECLARE v_low_n bigint;
DECLARE v_low_after bigint;
DECLARE v_low_until timestamp;
DECLARE v_promoted_to timestamp;
DECLARE v_full_scan smallint = 0;
DECLARE v_from bigint = -9223372036854775807;
DECLARE v_scanned bigint;
DECLARE v_more bigint;
DECLARE v_last bigint;
DECLARE v_more_last bigint;
DECLARE v_count integer = 0;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_name('reader', p_reader, 1);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    SELECT paused, grouped, COALESCE(:p_lease_seconds, lease_seconds), max_active, rate, rate_seconds FROM imq_policy(:p_type)
    INTO v_paused, v_grouped, v_seconds, v_max_active, v_rate, v_rate_seconds;
    IF (v_grouped = 1) THEN
        EXECUTE PROCEDURE imq_raise_error('queue_is_ordered',
            'type: ' || p_type || ' is ordered or has limits per group; use claim_batch');
    EXECUTE PROCEDURE imq_require_read_committed;
    IF (v_paused = 1) THEN
        EXIT;
    v_now = mq_utc_now();
    v_size = COALESCE(p_size, 1);
    IF (v_max_active + v_rate > 0) THEN
        EXECUTE PROCEDURE imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds) RETURNING_VALUES v_size;
    IF (v_size = 0) THEN
        EXIT;
    v_reader = imq_reader_name(p_reader);
    batch_key = LOWER(UUID_TO_CHAR(GEN_UUID()));

    SELECT n, after_id, low_until, promoted_to FROM mq_ring WHERE type = :p_type AND reader = ''
    ORDER BY type DESC, reader DESC, n DESC, after_id DESC ROWS 1
    INTO v_low_n, v_low_after, v_low_until, v_promoted_to;
    IF (v_now < v_low_until AND v_now > DATEADD(-6 SECOND TO v_low_until) AND v_promoted_to <= v_now) THEN
        v_from = v_low_after;
    ELSE
    BEGIN
        v_full_scan = 1;
        v_promoted_to = '1900-01-01';
    END
    EXECUTE PROCEDURE imq_fill_ring(p_type, v_size, v_full_scan, v_promoted_to, v_now, c_long)
        RETURNING_VALUES v_promoted_to, v_scanned;

    SELECT n, after_id FROM mq_ring WHERE type = :p_type AND reader = :v_reader
    ORDER BY type DESC, reader DESC, n DESC, after_id DESC ROWS 1
    INTO v_old_n, v_old_after;
    v_after = COALESCE(p_after_id, v_old_after, 0);
    v_round = COALESCE(v_old_n, 0) + IIF(p_after_id IS NULL, 0, 1);
    EXECUTE PROCEDURE imq_take_ring(batch_key, 0, v_size, p_type, MAXVALUE(v_after, v_from), 9223372036854775807)
        RETURNING_VALUES v_count, v_last;
    v_low_after = v_from;
    IF (v_count < v_size) THEN
    BEGIN
        EXECUTE PROCEDURE imq_scan_ring(p_type, v_from, v_after, IIF(v_count = 0, 1, 0), c_long)
            RETURNING_VALUES v_lowest_id, v_more;
        v_scanned = v_scanned + v_more;
        v_low_after = CASE
            WHEN v_lowest_id IS NOT NULL THEN v_lowest_id - 1
            WHEN v_count > 0 THEN MAXVALUE(v_after, v_from)
        END;
        v_more = v_count;
        IF (v_lowest_id IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_take_ring(batch_key, v_count, v_size, p_type, v_lowest_id - 1, v_after)
                RETURNING_VALUES v_count, v_more_last;
        v_last = COALESCE(v_more_last, v_last);
        v_round = v_round + IIF(v_count > v_more, 1, 0);
    END
    IF (v_scanned >= c_long) THEN
        EXECUTE PROCEDURE imq_renew_ring_mark(p_type, v_low_n, v_low_after,
            IIF(v_full_scan = 1, DATEADD(MINVALUE(10 * v_scanned, c_longest) MILLISECOND TO mq_utc_now()), v_low_until),
            v_promoted_to);
    IF (v_count = 0) THEN
        EXIT;
    IF (v_rate > 0) THEN
        EXECUTE PROCEDURE imq_spend(p_type, v_count, v_rate, v_rate_seconds);
    EXECUTE PROCEDURE imq_save_position(p_type, v_reader, v_size, v_round, v_last, v_old_n, v_old_after);
    EXECUTE PROCEDURE imq_write_batch(batch_key, p_type, v_reader, v_seconds, NULL, NULL) RETURNING_VALUES lease_until;
    -- Sort narrow rows first, then join: the sort carries no bodies.
    FOR SELECT c.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, c.attempt, m.created_at, m.source
        FROM (SELECT id, attempt FROM mq_claimed WHERE batch_key = :batch_key ORDER BY n) AS c
        LEFT JOIN mq_message AS m ON m.id = c.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source
    DO
        SUSPEND;
END^

SET TERM ; ^
