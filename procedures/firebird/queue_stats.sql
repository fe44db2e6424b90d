-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   p_type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, and never more than 10,001 index entries a number
-- Example:     SELECT * FROM mq_queue_stats;
--
-- One cursor a table, all in the order of the types, and a merge of them: statements for each type would take 20 times as long
-- where there are many. A cursor that has counted enough of a type begins again behind that.

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
-- Where cursors begin: the least name behind v_after, without an equal part, which the engine would read to its end; the longest
-- names have no such. Nothing comes before the first; the empty name comes behind those that begin with a control character.
DECLARE v_after mq_name;
DECLARE v_from mq_name;
DECLARE v_ordered smallint;
DECLARE v_default_ordered smallint;
DECLARE v_default_paused smallint;
DECLARE v_oldest timestamp;
DECLARE v_tickets bigint;
-- What each cursor stands at; the type is NULL behind its end.
DECLARE q_type mq_name;
DECLARE q_ordered smallint;
DECLARE q_paused smallint;
DECLARE r_type mq_name;
DECLARE r_run_at timestamp;
DECLARE g_type mq_name;
DECLARE g_run_at timestamp;
DECLARE d_type mq_name;
DECLARE d_run_at timestamp;
DECLARE b_type mq_name;
DECLARE b_until timestamp;
DECLARE b_count bigint;
DECLARE e_type mq_name;
DECLARE queues CURSOR FOR (
    SELECT type, ordered, paused FROM mq_queue WHERE type >= :v_from AND CHAR_LENGTH(type) > 0
    PLAN (mq_queue ORDER mq_queue_pk) ORDER BY type);
DECLARE ready_ones CURSOR FOR (
    SELECT type, run_at FROM mq_ready WHERE type >= :v_from AND type <> :v_after
    PLAN (mq_ready ORDER mq_ready_pk) ORDER BY type, priority, run_at, id);
DECLARE grouped_ones CURSOR FOR (
    SELECT g.type, m.run_at FROM mq_grouped AS g LEFT JOIN mq_message AS m ON m.id = g.id
    WHERE g.type >= :v_from AND g.type <> :v_after
    PLAN JOIN (g ORDER mq_grouped_pk, m INDEX (mq_message_pk)) ORDER BY g.type, g.group_key, g.id);
DECLARE delayed_ones CURSOR FOR (
    SELECT type, run_at FROM mq_delayed WHERE type >= :v_from AND type <> :v_after
    PLAN (mq_delayed ORDER mq_delayed_due) ORDER BY type, run_at, id);
DECLARE batches CURSOR FOR (
    SELECT b.type, b.lease_until, (SELECT COUNT(*) FROM mq_claimed AS c WHERE c.batch_key = b.batch_key) AS held
    FROM mq_batch AS b WHERE b.type >= :v_from AND b.type <> :v_after
    PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until);
DECLARE dead_ones CURSOR FOR (
    SELECT type FROM mq_dead WHERE type >= :v_from AND type <> :v_after
    PLAN (mq_dead ORDER mq_dead_age) ORDER BY type, died_at, id);
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE mq_require_record_version;
    v_now = mq_utc_now();
    v_after = RPAD('', 200, ASCII_CHAR(0));
    v_from = COALESCE(p_type, v_after);
    SELECT ordered, paused FROM mq_queue WHERE type = '' INTO v_default_ordered, v_default_paused;
    OPEN queues;
    FETCH queues INTO q_type, q_ordered, q_paused;
    OPEN ready_ones;
    FETCH ready_ones INTO r_type, r_run_at;
    OPEN grouped_ones;
    FETCH grouped_ones INTO g_type, g_run_at;
    OPEN delayed_ones;
    FETCH delayed_ones INTO d_type, d_run_at;
    OPEN batches;
    FETCH batches INTO b_type, b_until, b_count;
    OPEN dead_ones;
    FETCH dead_ones INTO e_type;
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
            v_after = type;
            v_from = IIF(CHAR_LENGTH(type) < 200, RPAD(type, 199) || '!', type);
        END
        ready = 0;
        delayed = 0;
        active = 0;
        expired = 0;
        dead = 0;
        v_tickets = 0;
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
        -- In an ordered queue those are tickets. In claim order: the first is the oldest but for priorities.
        IF (r_type = type AND v_ordered = 0) THEN
            v_oldest = r_run_at;
        WHILE (r_type = type) DO
        BEGIN
            v_tickets = v_tickets + 1;
            IF (v_tickets > c_most) THEN
            BEGIN
                CLOSE ready_ones;
                OPEN ready_ones;
            END
            r_type = NULL;
            FETCH ready_ones INTO r_type, r_run_at;
        END
        IF (v_ordered = 0) THEN
            ready = v_tickets;
        WHILE (g_type = type) DO
        BEGIN
            IF (v_ordered = 1) THEN
            BEGIN
                ready = ready + 1;
                v_oldest = COALESCE(MINVALUE(v_oldest, g_run_at), v_oldest, g_run_at);
            END
            IF (ready > c_most OR v_ordered = 0) THEN
            BEGIN
                CLOSE grouped_ones;
                OPEN grouped_ones;
            END
            g_type = NULL;
            FETCH grouped_ones INTO g_type, g_run_at;
        END
        IF (d_type = type AND d_run_at <= v_now AND v_oldest IS NULL) THEN
            v_oldest = d_run_at;
        WHILE (d_type = type) DO
        BEGIN
            IF (d_run_at <= v_now) THEN
                ready = ready + 1;
            ELSE
                delayed = delayed + 1;
            IF (delayed > c_most) THEN
            BEGIN
                CLOSE delayed_ones;
                OPEN delayed_ones;
            END
            d_type = NULL;
            FETCH delayed_ones INTO d_type, d_run_at;
        END
        WHILE (b_type = type) DO
        BEGIN
            IF (b_until <= v_now) THEN
                expired = expired + b_count;
            ELSE
                active = active + b_count;
            IF (active > c_most) THEN
            BEGIN
                CLOSE batches;
                OPEN batches;
            END
            b_type = NULL;
            FETCH batches INTO b_type, b_until, b_count;
        END
        WHILE (e_type = type) DO
        BEGIN
            dead = dead + 1;
            IF (dead > c_most) THEN
            BEGIN
                CLOSE dead_ones;
                OPEN dead_ones;
            END
            e_type = NULL;
            FETCH dead_ones INTO e_type;
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
