-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; never waits for another claim
-- Example:     SELECT * FROM mq_claim_wraparound('crawl', 10, 'worker-1');
--
-- The reader's place is inserted, not updated, as in mq_mark.

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
DECLARE v_now timestamp;
DECLARE v_paused smallint;
DECLARE v_ordered smallint;
DECLARE v_seconds integer;
DECLARE v_reader mq_name;
DECLARE v_size integer;
DECLARE v_n bigint;
DECLARE v_after bigint;
DECLARE v_count integer = 0;
DECLARE v_moved bigint;
DECLARE v_due timestamp;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE mq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE mq_require_name('reader', p_reader, 1);
    EXECUTE PROCEDURE mq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    SELECT paused, ordered, COALESCE(:p_lease_seconds, lease_seconds)
    FROM mq_queue WHERE type IN (:p_type, '') ORDER BY CHAR_LENGTH(type) DESC ROWS 1
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
    IF (EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now)) THEN
        EXECUTE PROCEDURE mq_rescue(p_type, 20) RETURNING_VALUES v_moved;
    IF (EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at <= :v_now)) THEN
        EXECUTE PROCEDURE mq_promote(p_type, '1900-01-01', v_now, MAXVALUE(2 * v_size, 100), 0)
            RETURNING_VALUES v_moved, v_due;

    SELECT n, after_id FROM mq_ring WHERE type = :p_type AND reader = :v_reader
    ORDER BY type DESC, reader DESC, n DESC ROWS 1
    INTO v_n, v_after;
    v_after = COALESCE(p_after_id, v_after, 0);

    FOR SELECT id, attempt FROM mq_take_ring(:p_type, :v_after, 9223372036854775807, :v_size) INTO id, attempt DO
    BEGIN
        v_count = v_count + 1;
        INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :id, :v_count, :attempt);
    END
    IF (v_count < v_size) THEN
        FOR SELECT id, attempt FROM mq_take_ring(:p_type, -9223372036854775807, :v_after, :v_size - :v_count) INTO id, attempt DO
        BEGIN
            v_count = v_count + 1;
            INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :id, :v_count, :attempt);
        END
    IF (v_count = 0) THEN
        EXIT;

    INSERT INTO mq_ring (type, reader, n, after_id) VALUES (:p_type, :v_reader, COALESCE(:v_n, 0) + 1, :id);
    FOR SELECT n FROM mq_ring WHERE type = :p_type AND reader = :v_reader AND n BETWEEN :v_n - 20 AND :v_n
        INTO v_n AS CURSOR old
    DO
    BEGIN
        DELETE FROM mq_ring WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_moved = 0;
    END
    EXECUTE PROCEDURE mq_hold(batch_key, p_type, v_reader, v_seconds) RETURNING_VALUES lease_until;
    -- The sort is of narrow rows, and the join begins with them.
    FOR SELECT c.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, c.attempt, m.created_at, m.source
        FROM (SELECT id, attempt FROM mq_claimed WHERE batch_key = :batch_key ORDER BY n) AS c
        LEFT JOIN mq_message AS m ON m.id = c.id
        INTO id, type, body, headers, priority, group_key, dedup_key, attempt, created_at, source
    DO
        SUSPEND;
END^

SET TERM ; ^
