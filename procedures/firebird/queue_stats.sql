-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   p_type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, and never more than 10,001 index entries a number
-- Example:     SELECT * FROM mq_queue_stats;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_queue_stats (
    p_type mq_argument = NULL
)
RETURNS (
    type mq_name,
    ready bigint,
    delayed bigint,
    active bigint,
    expired bigint,
    dead bigint,
    oldest_ready_seconds double precision,
    capped bigint,
    paused bigint
)
AS
DECLARE v_now timestamp;
DECLARE v_after mq_name;
DECLARE v_next mq_name;
DECLARE v_ordered smallint;
DECLARE v_due bigint;
DECLARE v_oldest timestamp;
DECLARE v_oldest_due timestamp;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 1);
    v_now = mq_utc_now();
    type = p_type;
    -- Nothing comes before this; the empty name comes behind those that begin with a control character.
    v_after = RPAD('', 200, ASCII_CHAR(0));
    v_next = v_after;
    WHILE (1 = 1) DO
    BEGIN
        IF (p_type IS NULL) THEN
        BEGIN
            -- The next type by name, from the front of each index. The policy without a name is no type.
            SELECT MIN(t.type)
            FROM (
                SELECT q.type FROM (
                    SELECT type FROM mq_queue WHERE type >= :v_next AND type <> :v_after AND CHAR_LENGTH(type) > 0
                    PLAN (mq_queue ORDER mq_queue_pk)
                    ORDER BY type ROWS 1
                ) AS q
                UNION ALL
                SELECT r.type FROM (
                    SELECT type FROM mq_ready WHERE type >= :v_next AND type <> :v_after
                    PLAN (mq_ready ORDER mq_ready_pk)
                    ORDER BY type, priority, run_at, id ROWS 1
                ) AS r
                UNION ALL
                SELECT d.type FROM (
                    SELECT type FROM mq_delayed WHERE type >= :v_next AND type <> :v_after
                    PLAN (mq_delayed ORDER mq_delayed_due)
                    ORDER BY type, run_at, id ROWS 1
                ) AS d
                UNION ALL
                SELECT b.type FROM (
                    SELECT type FROM mq_batch WHERE type >= :v_next AND type <> :v_after
                    PLAN (mq_batch ORDER mq_batch_lease)
                    ORDER BY type, lease_until ROWS 1
                ) AS b
                UNION ALL
                SELECT g.type FROM (
                    SELECT type FROM mq_grouped WHERE type >= :v_next AND type <> :v_after
                    PLAN (mq_grouped ORDER mq_grouped_pk)
                    ORDER BY type, group_key, id ROWS 1
                ) AS g
                UNION ALL
                SELECT e.type FROM (
                    SELECT type FROM mq_dead WHERE type >= :v_next AND type <> :v_after
                    PLAN (mq_dead ORDER mq_dead_age)
                    ORDER BY type, died_at, id ROWS 1
                ) AS e
            ) AS t
            INTO type;
            IF (type IS NULL) THEN
                LEAVE;
            v_after = type;
            -- The least name behind it: without an equal part, which the engine would read to its end. The longest names have
            -- none.
            v_next = IIF(CHAR_LENGTH(type) < 200, RPAD(type, 199) || '!', type);
        END
        SELECT ordered, paused FROM mq_queue WHERE type IN (:type, '') ORDER BY CHAR_LENGTH(type) DESC ROWS 1
        INTO v_ordered, paused;
        v_oldest = NULL;
        IF (v_ordered = 1) THEN
            SELECT COUNT(*), MIN(m.run_at)
            FROM (
                SELECT id FROM mq_grouped WHERE type = :type
                PLAN (mq_grouped ORDER mq_grouped_pk)
                ORDER BY type, group_key, id ROWS 10001
            ) AS g
            LEFT JOIN mq_message AS m ON m.id = g.id
            INTO ready, v_oldest;
        ELSE
        BEGIN
            SELECT COUNT(*)
            FROM (
                SELECT id FROM mq_ready WHERE type = :type
                PLAN (mq_ready ORDER mq_ready_pk)
                ORDER BY type, priority, run_at, id ROWS 10001
            ) AS r
            INTO ready;
            SELECT run_at FROM mq_ready WHERE type = :type
            PLAN (mq_ready ORDER mq_ready_pk)
            ORDER BY type, priority, run_at, id ROWS 1
            INTO v_oldest;
        END
        SELECT COUNT(*), MIN(d.run_at)
        FROM (
            SELECT run_at FROM mq_delayed WHERE type = :type AND run_at <= :v_now
            PLAN (mq_delayed ORDER mq_delayed_due)
            ORDER BY type, run_at, id ROWS 10001
        ) AS d
        INTO v_due, v_oldest_due;
        SELECT COUNT(*)
        FROM (
            SELECT run_at FROM mq_delayed WHERE type = :type AND run_at > :v_now
            PLAN (mq_delayed ORDER mq_delayed_due)
            ORDER BY type, run_at, id ROWS 10001
        ) AS d
        INTO delayed;
        -- LEFT, to begin with the batches.
        SELECT COUNT(*)
        FROM (
            SELECT c.id FROM mq_batch AS b LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
            WHERE b.type = :type AND b.lease_until > :v_now
            PLAN JOIN (b INDEX (mq_batch_lease), c INDEX (mq_claimed_pk))
            ROWS 10001
        ) AS a
        WHERE a.id IS NOT NULL
        INTO active;
        SELECT COUNT(*)
        FROM (
            SELECT c.id FROM mq_batch AS b LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
            WHERE b.type = :type AND b.lease_until <= :v_now
            PLAN JOIN (b INDEX (mq_batch_lease), c INDEX (mq_claimed_pk))
            ROWS 10001
        ) AS a
        WHERE a.id IS NOT NULL
        INTO expired;
        SELECT COUNT(*)
        FROM (
            SELECT id FROM mq_dead WHERE type = :type
            PLAN (mq_dead ORDER mq_dead_age)
            ORDER BY type, died_at, id ROWS 10001
        ) AS e
        INTO dead;
        ready = ready + v_due;
        v_oldest = COALESCE(v_oldest, v_oldest_due);
        capped = IIF(MAXVALUE(ready, delayed, active, expired, dead) > 10000, 1, 0);
        ready = MINVALUE(ready, 10000);
        delayed = MINVALUE(delayed, 10000);
        active = MINVALUE(active, 10000);
        expired = MINVALUE(expired, 10000);
        dead = MINVALUE(dead, 10000);
        oldest_ready_seconds = MAXVALUE(DATEDIFF(MILLISECOND FROM v_oldest TO v_now), 0) / 1e3;
        SUSPEND;
        IF (p_type IS NOT NULL) THEN
            LEAVE;
    END
END^

SET TERM ; ^
