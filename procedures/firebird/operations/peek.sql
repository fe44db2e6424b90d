-- peek: list messages without claiming them.
-- Arguments:   p_type (1 to 200 characters), p_state (N: in claim order, ready before delayed; A; E and C: the newest
--              first; NULL: N), p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to 16,777,216;
--              NULL: all)
-- Returns:     up to p_size messages with their state, consumer, times and error
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT id, attempts, error FROM mq_peek('email', 'E', 20);

CREATE OR ALTER PROCEDURE mq_peek (
    p_type mq_argument,
    p_state mq_text = NULL,
    p_size bigint = NULL,
    p_body_length bigint = NULL
)
RETURNS (
    id bigint, type mq_name, state varchar(1) CHARACTER SET UTF8, body mq_text, headers mq_text, priority integer,
    group_key mq_name, dedup_key mq_name, attempts integer, created_at timestamp, source mq_name, run_at timestamp,
    consumer mq_name, batch_key mq_key, lease_until timestamp, changed_at timestamp, error mq_error
)
AS
DECLARE v_size integer;
DECLARE v_grouped smallint;
DECLARE v_from timestamp;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    -- LIKE, because = ignores trailing blanks.
    IF (p_state NOT LIKE 'N' AND p_state NOT LIKE 'A' AND p_state NOT LIKE 'E' AND p_state NOT LIKE 'C') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'state: must be N, A, E or C');
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_range('body_length', p_body_length, 0, 16777216);
    state = COALESCE(p_state, 'N');
    v_size = COALESCE(p_size, 20);

    IF (state = 'N') THEN
    BEGIN
        SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
        IF (v_grouped = 1) THEN
            FOR
                SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                    m.priority, m.group_key, m.dedup_key, g.attempts, m.created_at, m.source, m.run_at
                FROM mq_grouped AS g LEFT JOIN mq_message AS m ON m.id = g.id
                WHERE g.type = :p_type
                PLAN JOIN (g ORDER mq_grouped_pk, m INDEX (mq_message_pk))
                ORDER BY g.type, g.group_key, g.id
                ROWS :v_size
                INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at
            DO
            BEGIN
                v_size = v_size - 1;
                IF (id IS NOT NULL) THEN
                    SUSPEND;
            END
        ELSE
            FOR
                SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                    m.priority, m.group_key, m.dedup_key, r.attempts, m.created_at, m.source, r.run_at
                FROM mq_ready AS r LEFT JOIN mq_message AS m ON m.id = r.id
                WHERE r.type = :p_type
                PLAN JOIN (r ORDER mq_ready_pk, m INDEX (mq_message_pk))
                ORDER BY r.type, r.priority, r.run_at, r.id
                ROWS :v_size
                INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at
            DO
            BEGIN
                v_size = v_size - 1;
                IF (id IS NOT NULL) THEN
                    SUSPEND;
            END
        FOR
            SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                m.priority, m.group_key, m.dedup_key, d.attempts, m.created_at, m.source, d.run_at, d.error
            FROM mq_delayed AS d LEFT JOIN mq_message AS m ON m.id = d.id
            WHERE d.type = :p_type
            PLAN JOIN (d ORDER mq_delayed_due, m INDEX (mq_message_pk))
            ORDER BY d.type, d.run_at, d.id
            ROWS :v_size
            INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, error
        DO
            IF (id IS NOT NULL) THEN
                SUSPEND;
    END

    ELSE IF (state = 'A') THEN
        FOR
            SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                m.priority, m.group_key, m.dedup_key, COALESCE(b.attempt, c.attempt), m.created_at, m.source, b.consumer,
                b.batch_key, b.lease_until, b.claimed_at
            FROM mq_batch AS b
            LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
            LEFT JOIN mq_message AS m ON m.id = COALESCE(b.id, c.id)
            WHERE b.type = :p_type
            PLAN JOIN (b ORDER mq_batch_lease, c INDEX (mq_claimed_pk), m INDEX (mq_message_pk))
            ORDER BY b.type, b.lease_until
            INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, consumer, batch_key,
                lease_until, changed_at
        DO
        BEGIN
            IF (v_size = 0) THEN
                LEAVE;
            IF (id IS NOT NULL) THEN
            BEGIN
                v_size = v_size - 1;
                SUSPEND;
            END
        END

    ELSE IF (state = 'E') THEN
    BEGIN
        v_from = imq_newest_from('dead', p_type, v_size);
        FOR
            SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                m.priority, m.group_key, m.dedup_key, e.attempts, m.created_at, m.source, e.consumer, e.died_at, e.error
            FROM mq_dead AS e LEFT JOIN mq_message AS m ON m.id = e.id
            WHERE e.type = :p_type AND e.died_at >= :v_from
            ORDER BY e.died_at DESC, e.id DESC
            ROWS :v_size
            INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, consumer, changed_at, error
        DO
            IF (id IS NOT NULL) THEN
                SUSPEND;
    END

    ELSE
    BEGIN
        v_from = imq_newest_from('archive', p_type, v_size);
        FOR
            SELECT a.id, a.type, IIF(OCTET_LENGTH(a.body) > :p_body_length, LEFT(a.body, :p_body_length), a.body), a.headers,
                a.priority, a.group_key, a.dedup_key, a.attempts, a.created_at, a.source, a.consumer, a.completed_at
            FROM mq_archive AS a
            WHERE a.type = :p_type AND a.completed_at >= :v_from
            ORDER BY a.completed_at DESC, a.id DESC
            ROWS :v_size
            INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, consumer, changed_at
        DO
            SUSPEND;
    END
END
