-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_wraparound('crawl', 10, 'worker-1');
--
-- The reader's place, round and id, is inserted, not updated, as in mq_mark: nobody meets another's lock, and of two claims of
-- one reader that began at the same place the one that went further counts.
--
-- Low-water mark. A claim that comes short goes round to the lowest id, and while a transaction with a snapshot is open it walks
-- all that is done up to the first message that is left; so it does where it looks for what is due. If that took long, the
-- next claims begin there, for ten times as long as it took, at most 5 seconds: the mark is the place of a reader without a
-- name, good until low_until. What comes back below it calls lower_ring; what a late sender commits there waits for the next
-- look from the very start.

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
-- Milliseconds; to walk 1,000 dead rows takes about one.
DECLARE c_long integer = 2;
DECLARE v_now timestamp;
DECLARE v_paused smallint;
DECLARE v_ordered smallint;
DECLARE v_seconds integer;
DECLARE v_reader mq_name;
DECLARE v_size integer;
DECLARE v_n bigint;
DECLARE v_after bigint;
DECLARE v_place_after bigint;
DECLARE v_old_n bigint;
DECLARE v_old_after bigint;
DECLARE v_round bigint;
DECLARE v_next_id bigint;
DECLARE v_low_n bigint;
DECLARE v_low_after bigint;
DECLARE v_low_until timestamp;
DECLARE v_low_promoted_to timestamp;
DECLARE v_full smallint = 0;
DECLARE v_from bigint = -9223372036854775807;
DECLARE v_promoted_to timestamp = '1900-01-01';
DECLARE v_expired smallint = 0;
DECLARE v_due smallint = 0;
DECLARE v_begun timestamp;
DECLARE v_walked bigint;
DECLARE v_again bigint;
DECLARE v_tries integer;
DECLARE v_last bigint;
DECLARE v_count integer = 0;
DECLARE v_moved bigint;
DECLARE v_first timestamp;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE mq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE mq_require_name('reader', p_reader, 1);
    EXECUTE PROCEDURE mq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    SELECT paused, ordered, COALESCE(:p_lease_seconds, lease_seconds)
    FROM mq_policy(:p_type)
    INTO v_paused, v_ordered, v_seconds;
    IF (v_ordered = 1) THEN
        EXECUTE PROCEDURE mq_raise_error('queue_is_ordered',
            'claim_wraparound goes by id and would break the order of ' || p_type || '; use claim_batch');
    EXECUTE PROCEDURE mq_require_read_committed;
    IF (v_paused = 1) THEN
        EXIT;
    v_now = mq_utc_now();
    v_size = COALESCE(p_size, 1);
    v_reader = mq_reader_name(p_reader);
    batch_key = LOWER(UUID_TO_CHAR(GEN_UUID()));

    SELECT n, after_id, low_until, promoted_to FROM mq_ring WHERE type = :p_type AND reader = ''
    ORDER BY type DESC, reader DESC, n DESC, after_id DESC ROWS 1
    INTO v_low_n, v_low_after, v_low_until, v_low_promoted_to;
    IF (v_now < v_low_until AND v_now > DATEADD(-6 SECOND TO v_low_until) AND v_low_promoted_to <= v_now) THEN
    BEGIN
        v_from = v_low_after;
        v_promoted_to = v_low_promoted_to;
    END
    ELSE
        v_full = 1;
    -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
    v_tries = 1;
    WHILE (v_tries <= 2) DO
    BEGIN
        v_begun = mq_utc_now();
        IF (v_full = 1) THEN
            IF (EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now)) THEN
                v_expired = 1;
        IF (EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at > :v_promoted_to AND run_at <= :v_now)) THEN
            v_due = 1;
        v_walked = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
        v_tries = IIF(v_walked < c_long, 3, v_tries + 1);
    END
    IF (v_expired = 1) THEN
        EXECUTE PROCEDURE mq_rescue(p_type, 20) RETURNING_VALUES v_moved;
    IF (v_due = 1) THEN
    BEGIN
        EXECUTE PROCEDURE mq_promote(p_type, v_promoted_to, v_now, MAXVALUE(2 * v_size, 100), 0)
            RETURNING_VALUES v_moved, v_first;
        v_due = IIF(v_moved < MAXVALUE(2 * v_size, 100), 0, 1);
    END

    SELECT n, after_id FROM mq_ring WHERE type = :p_type AND reader = :v_reader
    ORDER BY type DESC, reader DESC, n DESC, after_id DESC ROWS 1
    INTO v_n, v_place_after;
    v_after = COALESCE(p_after_id, v_place_after, 0);
    v_round = COALESCE(v_n, 0) + IIF(p_after_id IS NULL, 0, 1);

    FOR SELECT id, attempt FROM mq_take_ring(:p_type, MAXVALUE(:v_after, :v_from), 9223372036854775807, :v_size)
        INTO id, attempt
    DO
    BEGIN
        v_count = v_count + 1;
        v_last = id;
        INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :id, :v_count, :attempt);
    END
    IF (v_count < v_size) THEN
    BEGIN
        v_tries = 1;
        WHILE (v_tries <= 2) DO
        BEGIN
            v_begun = mq_utc_now();
            v_next_id = NULL;
            IF (v_count = 0) THEN
                SELECT r.id
                FROM mq_ready AS r
                WHERE r.type = :p_type AND r.id > MAXVALUE(:v_after, :v_from)
                PLAN (r ORDER mq_ready_ring)
                ORDER BY r.type, r.id
                ROWS 1
                INTO v_last;
            SELECT r.id
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.id > :v_from AND r.id <= :v_after
            PLAN (r ORDER mq_ready_ring)
            ORDER BY r.type, r.id
            ROWS 1
            INTO v_next_id;
            v_again = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
            v_tries = IIF(v_again < c_long, 3, v_tries + 1);
        END
        v_walked = v_walked + v_again;
        v_low_after = CASE
            WHEN v_next_id IS NOT NULL THEN v_next_id - 1
            WHEN v_count > 0 THEN MAXVALUE(v_after, v_from)
            -- Nothing is left: up to the newest id there is.
            ELSE GEN_ID(mq_message_id, 0)
        END;
        IF (v_next_id IS NOT NULL) THEN
        BEGIN
            v_round = v_round + 1;
            FOR SELECT id, attempt FROM mq_take_ring(:p_type, :v_next_id - 1, :v_after, :v_size - :v_count) INTO id, attempt DO
            BEGIN
                v_count = v_count + 1;
                v_next_id = NULL;
                v_last = id;
                INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :id, :v_count, :attempt);
            END
            IF (v_next_id IS NOT NULL) THEN
                v_round = v_round - 1;
        END
    END
    ELSE
        v_low_after = v_from;
    IF (v_walked >= c_long) THEN
    BEGIN
        INSERT INTO mq_ring (type, reader, n, after_id, low_until, promoted_to)
        VALUES (:p_type, '', COALESCE(:v_low_n, 0) + 1, :v_low_after,
            IIF(:v_full = 1, DATEADD(MINVALUE(10 * :v_walked, 5000) MILLISECOND TO mq_utc_now()), :v_low_until),
            -- Not up to now: somebody may be about to commit what he has failed.
            IIF(:v_due = 1, :v_promoted_to, DATEADD(-1 SECOND TO :v_now)));
        FOR SELECT n FROM mq_ring WHERE type = :p_type AND reader = '' AND n BETWEEN :v_low_n - 20 AND :v_low_n
            INTO v_old_n AS CURSOR low
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF low;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_moved = 0;
        END
    END
    IF (v_count = 0) THEN
        EXIT;

    INSERT INTO mq_ring (type, reader, n, after_id) VALUES (:p_type, :v_reader, :v_round, :v_last);
    -- The place before, those that other claims left a little behind it, and at the end of a round the last two.
    IF (v_round = v_n) THEN
        FOR SELECT after_id
            FROM mq_ring
            WHERE type = :p_type AND reader = :v_reader AND n = :v_n
                AND after_id BETWEEN :v_place_after - 20 * :v_size AND :v_place_after
            INTO v_old_after AS CURSOR old
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF old;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_moved = 0;
        END
    ELSE
        FOR SELECT after_id FROM mq_ring WHERE type = :p_type AND reader = :v_reader AND n BETWEEN :v_n - 1 AND :v_n
            INTO v_old_after AS CURSOR past
        DO
        BEGIN
            DELETE FROM mq_ring WHERE CURRENT OF past;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_moved = 0;
        END
    EXECUTE PROCEDURE mq_hold(batch_key, p_type, v_reader, v_seconds, NULL, NULL) RETURNING_VALUES lease_until;
    -- The sort is of narrow rows, and the join begins with them.
    FOR SELECT c.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, c.attempt, m.created_at, m.source
        FROM (SELECT id, attempt FROM mq_claimed WHERE batch_key = :batch_key ORDER BY n) AS c
        LEFT JOIN mq_message AS m ON m.id = c.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source
    DO
        SUSPEND;
END^

SET TERM ; ^
