-- count_types: count the messages of each type in one of the queue's tables, claims exactly, others up to a limit.
-- Arguments:   p_table (ready, delayed, batch, grouped or dead), p_type (NULL: all), p_cap (a count above it need not be
--              exact), p_now
-- Returns:     type, in order; first_count and second_count: the messages that are ready, due and delayed, active and
--              expired, or dead; oldest: the smallest run_at of ready or due messages; NULL: none
--
-- Each loop counts one type after the other. When it has counted enough of a type, it stops and starts again at the
-- smallest name that can follow, because the engine would read all rows that are equal to a shared bound. A name of the
-- greatest length has no such next name. No name sorts before RPAD('', 200, ASCII_CHAR(0)).
--
-- It is long because each table has its own loop: one cursor for all took 2.4 times as long, and a loop that restarts at
-- each type took twice as long with 300 types.
CREATE OR ALTER PROCEDURE imq_count_types (
    p_table varchar(7) CHARACTER SET ASCII, p_type mq_name, p_cap integer, p_now timestamp
)
RETURNS (type mq_name, first_count bigint, second_count bigint, oldest timestamp)
AS
DECLARE v_from mq_name; DECLARE v_past mq_name; DECLARE v_type mq_name;
DECLARE v_at timestamp;
DECLARE v_messages bigint;
BEGIN
    v_past = RPAD('', 200, ASCII_CHAR(0));
    v_from = COALESCE(p_type, v_past);
    WHILE (v_from IS NOT NULL) DO
    BEGIN
        type = NULL;
        first_count = 0;
        second_count = 0;
        oldest = NULL;
        IF (p_table = 'ready') THEN
            FOR SELECT r.type, r.run_at FROM mq_ready AS r WHERE r.type >= :v_from AND r.type <> :v_past
                PLAN (r ORDER mq_ready_pk) ORDER BY r.type, r.priority, r.run_at, r.id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (v_type <> p_type) THEN
                        LEAVE;
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    type = v_type;
                    first_count = 0;
                    oldest = v_at;
                END
                first_count = first_count + 1;
                IF (v_at < oldest) THEN
                    oldest = v_at;
                IF (first_count > p_cap) THEN
                    LEAVE;
            END
        ELSE IF (p_table = 'grouped') THEN
            FOR SELECT g.type, m.run_at FROM mq_grouped AS g LEFT JOIN mq_message AS m ON m.id = g.id
                WHERE g.type >= :v_from AND g.type <> :v_past
                PLAN JOIN (g ORDER mq_grouped_pk, m INDEX (mq_message_pk)) ORDER BY g.type, g.group_key, g.id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (v_type <> p_type) THEN
                        LEAVE;
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    type = v_type;
                    first_count = 0;
                    oldest = NULL;
                END
                first_count = first_count + 1;
                IF (oldest IS NULL OR v_at < oldest) THEN
                    oldest = v_at;
                IF (first_count > p_cap) THEN
                    LEAVE;
            END
        ELSE IF (p_table = 'delayed') THEN
            FOR SELECT d.type, d.run_at FROM mq_delayed AS d WHERE d.type >= :v_from AND d.type <> :v_past
                PLAN (d ORDER mq_delayed_due) ORDER BY d.type, d.run_at, d.id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (v_type <> p_type) THEN
                        LEAVE;
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    type = v_type;
                    first_count = 0;
                    second_count = 0;
                    oldest = NULL;
                END
                IF (v_at <= p_now) THEN
                BEGIN
                    first_count = first_count + 1;
                    oldest = COALESCE(oldest, v_at);
                END
                ELSE
                    second_count = second_count + 1;
                IF (first_count + second_count > 2 * p_cap) THEN
                    LEAVE;
            END
        ELSE IF (p_table = 'batch') THEN
            FOR SELECT b.type, b.lease_until,
                    IIF(b.id IS NULL, (SELECT COUNT(*) FROM mq_claimed AS c WHERE c.batch_key = b.batch_key), 1)
                FROM mq_batch AS b WHERE b.type >= :v_from AND b.type <> :v_past
                PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until
                INTO v_type, v_at, v_messages
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (v_type <> p_type) THEN
                        LEAVE;
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    type = v_type;
                    first_count = 0;
                    second_count = 0;
                END
                first_count = first_count + IIF(v_at > p_now, v_messages, 0);
                second_count = second_count + IIF(v_at > p_now, 0, v_messages);
            END
        ELSE
            FOR SELECT e.type FROM mq_dead AS e WHERE e.type >= :v_from AND e.type <> :v_past
                PLAN (e ORDER mq_dead_age) ORDER BY e.type, e.died_at, e.id
                INTO v_type
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (v_type <> p_type) THEN
                        LEAVE;
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    type = v_type;
                    first_count = 0;
                END
                first_count = first_count + 1;
                IF (first_count > p_cap) THEN
                    LEAVE;
            END
        IF (type IS NULL) THEN
            EXIT;
        IF (p_table = 'delayed' AND first_count > p_cap) THEN
            -- The loop may have stopped before the messages that are not due.
            SELECT COUNT(*)
            FROM (
                SELECT d.id FROM mq_delayed AS d WHERE d.type = :type AND d.run_at > :p_now
                PLAN (d ORDER mq_delayed_due) ORDER BY d.type, d.run_at, d.id ROWS :p_cap + 1
            ) AS w
            INTO second_count;
        SUSPEND;
        v_past = type;
        v_from = CASE
            WHEN p_type IS NOT NULL THEN NULL
            WHEN first_count + second_count <= p_cap OR p_table = 'batch' THEN NULL
            WHEN CHAR_LENGTH(type) < 200 THEN RPAD(type, 199) || '!'
            ELSE type
        END;
    END
END
