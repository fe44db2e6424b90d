-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   p_type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, and never more than 10,001 index entries a number
-- Example:     SELECT * FROM mq_queue_stats;
--
-- One cursor a table, all in the order of the types, and a merge of them: statements for each type would take 20 times as long
-- where there are many.

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
DECLARE c_most integer = 10000;
DECLARE v_now timestamp;
DECLARE v_type mq_name;
DECLARE v_ordered smallint;
DECLARE v_default_ordered smallint;
DECLARE v_default_paused smallint;
DECLARE v_oldest timestamp;
-- What each cursor stands at; the type is NULL behind its end.
DECLARE q_type mq_name;
DECLARE q_ordered smallint;
DECLARE q_paused smallint;
DECLARE r_type mq_name;
DECLARE r_past bigint;
DECLARE r_first timestamp;
DECLARE g_type mq_name;
DECLARE g_past bigint;
DECLARE g_first timestamp;
DECLARE d_type mq_name;
DECLARE d_past bigint;
DECLARE d_ahead bigint;
DECLARE d_first timestamp;
DECLARE b_type mq_name;
DECLARE b_past bigint;
DECLARE b_ahead bigint;
DECLARE e_type mq_name;
DECLARE e_past bigint;
DECLARE queues CURSOR FOR (
    SELECT type, ordered, paused FROM mq_queue WHERE CHAR_LENGTH(type) > 0 AND type >= :v_type
    PLAN (mq_queue ORDER mq_queue_pk) ORDER BY type);
DECLARE ready_ones CURSOR FOR (SELECT type, past, first_at FROM mq_type_counts('R', :v_now, :p_type));
DECLARE grouped_ones CURSOR FOR (SELECT type, past, first_at FROM mq_type_counts('G', :v_now, :p_type));
DECLARE delayed_ones CURSOR FOR (SELECT type, past, ahead, first_at FROM mq_type_counts('D', :v_now, :p_type));
DECLARE held_ones CURSOR FOR (SELECT type, past, ahead FROM mq_type_counts('B', :v_now, :p_type));
DECLARE dead_ones CURSOR FOR (SELECT type, past FROM mq_type_counts('E', :v_now, :p_type));
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE mq_require_record_version;
    v_now = mq_utc_now();
    v_type = COALESCE(p_type, RPAD('', 200, ASCII_CHAR(0)));
    SELECT ordered, paused FROM mq_queue WHERE type = '' INTO v_default_ordered, v_default_paused;
    OPEN queues;
    FETCH queues INTO q_type, q_ordered, q_paused;
    OPEN ready_ones;
    FETCH ready_ones INTO r_type, r_past, r_first;
    OPEN grouped_ones;
    FETCH grouped_ones INTO g_type, g_past, g_first;
    OPEN delayed_ones;
    FETCH delayed_ones INTO d_type, d_past, d_ahead, d_first;
    OPEN held_ones;
    FETCH held_ones INTO b_type, b_past, b_ahead;
    OPEN dead_ones;
    FETCH dead_ones INTO e_type, e_past;
    WHILE (1 = 1) DO
    BEGIN
        type = COALESCE(p_type, q_type);
        IF (p_type IS NULL) THEN
        BEGIN
            IF (r_type < type OR type IS NULL) THEN
                type = r_type;
            IF (g_type < type OR type IS NULL) THEN
                type = g_type;
            IF (d_type < type OR type IS NULL) THEN
                type = d_type;
            IF (b_type < type OR type IS NULL) THEN
                type = b_type;
            IF (e_type < type OR type IS NULL) THEN
                type = e_type;
            IF (type IS NULL) THEN
                LEAVE;
        END
        ready = 0;
        delayed = 0;
        active = 0;
        expired = 0;
        dead = 0;
        v_oldest = NULL;
        v_ordered = v_default_ordered;
        paused = v_default_paused;
        IF (q_type = type) THEN
        BEGIN
            v_ordered = q_ordered;
            paused = q_paused;
            q_type = NULL;
            FETCH queues INTO q_type, q_ordered, q_paused;
        END
        IF (r_type = type) THEN
        BEGIN
            -- In an ordered queue those are tickets.
            IF (v_ordered = 0) THEN
            BEGIN
                ready = r_past;
                v_oldest = r_first;
            END
            r_type = NULL;
            FETCH ready_ones INTO r_type, r_past, r_first;
        END
        IF (g_type = type) THEN
        BEGIN
            IF (v_ordered = 1) THEN
            BEGIN
                ready = g_past;
                v_oldest = g_first;
            END
            g_type = NULL;
            FETCH grouped_ones INTO g_type, g_past, g_first;
        END
        IF (d_type = type) THEN
        BEGIN
            ready = ready + d_past;
            delayed = d_ahead;
            IF (d_past > 0) THEN
                v_oldest = COALESCE(v_oldest, d_first);
            d_type = NULL;
            FETCH delayed_ones INTO d_type, d_past, d_ahead, d_first;
        END
        IF (b_type = type) THEN
        BEGIN
            expired = b_past;
            active = b_ahead;
            b_type = NULL;
            FETCH held_ones INTO b_type, b_past, b_ahead;
        END
        IF (e_type = type) THEN
        BEGIN
            dead = e_past;
            e_type = NULL;
            FETCH dead_ones INTO e_type, e_past;
        END
        capped = IIF(MAXVALUE(ready, delayed, active, expired, dead) > c_most, 1, 0);
        ready = MINVALUE(ready, c_most);
        delayed = MINVALUE(delayed, c_most);
        active = MINVALUE(active, c_most);
        expired = MINVALUE(expired, c_most);
        dead = MINVALUE(dead, c_most);
        oldest_ready_seconds = MAXVALUE(DATEDIFF(MILLISECOND FROM v_oldest TO v_now), 0) / 1e3;
        SUSPEND;
        IF (p_type IS NOT NULL) THEN
            LEAVE;
    END
END^

SET TERM ; ^
