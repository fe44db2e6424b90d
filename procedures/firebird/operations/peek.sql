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

    IF (state IN ('E', 'C')) THEN
        v_from = imq_newest_from(TRIM(IIF(state = 'E', 'dead', 'archive')), p_type, v_size);
    IF (state = 'C') THEN
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
    ELSE
    BEGIN
        SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
        -- Of these branches, one or two have rows.
        FOR
            SELECT m.id, m.type, IIF(OCTET_LENGTH(m.body) > :p_body_length, LEFT(m.body, :p_body_length), m.body), m.headers,
                m.priority, m.group_key, m.dedup_key, p.attempts, m.created_at, m.source,
                IIF(:state = 'N', COALESCE(p.run_at, m.run_at), NULL), p.consumer, p.batch_key, p.lease_until, p.changed_at, p.error
            FROM (
                SELECT g.id, g.attempts, NULL AS run_at, NULL AS consumer, NULL AS batch_key, NULL AS lease_until,
                    NULL AS changed_at, NULL AS error
                FROM (
                    SELECT o.id, o.attempts FROM mq_grouped AS o WHERE o.type = IIF(:state = 'N' AND :v_grouped = 1, :p_type, NULL)
                    PLAN (o ORDER mq_grouped_pk) ORDER BY o.type, o.group_key, o.id
                ) AS g
                UNION ALL
                SELECT r.id, r.attempts, r.run_at, NULL, NULL, NULL, NULL, NULL
                FROM (
                    SELECT o.id, o.attempts, o.run_at FROM mq_ready AS o
                    WHERE o.type = IIF(:state = 'N' AND :v_grouped = 0, :p_type, NULL)
                    PLAN (o ORDER mq_ready_pk) ORDER BY o.type, o.priority, o.run_at, o.id
                ) AS r
                UNION ALL
                SELECT d.id, d.attempts, d.run_at, NULL, NULL, NULL, NULL, d.error
                FROM (
                    SELECT o.id, o.attempts, o.run_at, o.error FROM mq_delayed AS o WHERE o.type = IIF(:state = 'N', :p_type, NULL)
                    PLAN (o ORDER mq_delayed_due) ORDER BY o.type, o.run_at, o.id
                ) AS d
                UNION ALL
                SELECT a.id, a.attempt, NULL, a.consumer, a.batch_key, a.lease_until, a.claimed_at,
                    IIF(EXISTS (SELECT * FROM mq_cancelled AS k WHERE k.id = a.id), 'cancelled', NULL)
                FROM (
                    SELECT COALESCE(b.id, c.id) AS id, COALESCE(b.attempt, c.attempt) AS attempt, b.consumer, b.batch_key,
                        b.lease_until, b.claimed_at
                    FROM mq_batch AS b LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
                    WHERE b.type = IIF(:state = 'A', :p_type, NULL)
                    PLAN JOIN (b ORDER mq_batch_lease, c INDEX (mq_claimed_pk)) ORDER BY b.type, b.lease_until
                ) AS a
                UNION ALL
                SELECT e.id, e.attempts, NULL, e.consumer, NULL, NULL, e.died_at, e.error
                FROM (
                    SELECT o.id, o.attempts, o.consumer, o.died_at, o.error FROM mq_dead AS o
                    WHERE o.type = IIF(:state = 'E', :p_type, NULL) AND o.died_at >= :v_from
                    ORDER BY o.died_at DESC, o.id DESC
                ) AS e
            ) AS p
            LEFT JOIN mq_message AS m ON m.id = p.id
            INTO id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, batch_key,
                lease_until, changed_at, error
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
    END
END
