-- type_counts: how many entries one of the queue's tables has of each type, in the order of the types, without counting on
--              where there are many.
-- Arguments:   p_table (R: mq_ready, G: mq_grouped, D: mq_delayed, B: what mq_batch holds, E: mq_dead), p_now, p_type (only
--              this one; NULL: all)
-- Returns:     type, past (entries that are not timed, or whose time is over) and ahead (the others), of each enough to
--              tell that there are more than 10,000, first_at (the time of the first)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT type, past FROM mq_type_counts('R', mq_utc_now(), NULL);
--
-- Each loop begins again behind a type of which there are enough: at the least name behind it, without an equal part, which the
-- engine would read to its end; the longest names have no such. Nothing comes before RPAD('', 200, ASCII_CHAR(0)). Not by
-- cursors that are closed and opened again: that ends the server (5.0.4).

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_type_counts (
    p_table varchar(1) CHARACTER SET ASCII,
    p_now timestamp,
    p_type mq_name
)
RETURNS (
    type mq_name,
    past bigint,
    ahead bigint,
    first_at timestamp
)
AS
DECLARE c_most integer = 10000;
DECLARE v_from mq_name;
DECLARE v_after mq_name;
DECLARE v_again smallint = 1;
DECLARE v_type mq_name;
DECLARE v_at timestamp;
DECLARE v_n bigint;
BEGIN
    v_after = RPAD('', 200, ASCII_CHAR(0));
    v_from = COALESCE(p_type, v_after);
    WHILE (v_again = 1) DO
    BEGIN
        v_again = 0;
        IF (p_table = 'R') THEN
            FOR SELECT type, run_at FROM mq_ready WHERE type >= :v_from AND type <> :v_after
                PLAN (mq_ready ORDER mq_ready_pk) ORDER BY type, priority, run_at, id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    IF (v_type <> p_type) THEN
                        EXIT;
                    type = v_type;
                    past = 0;
                    ahead = 0;
                    first_at = v_at;
                END
                past = past + 1;
                IF (past > c_most) THEN
                BEGIN
                    v_again = 1;
                    LEAVE;
                END
            END
        ELSE IF (p_table = 'G') THEN
            FOR SELECT g.type, m.run_at FROM mq_grouped AS g LEFT JOIN mq_message AS m ON m.id = g.id
                WHERE g.type >= :v_from AND g.type <> :v_after
                PLAN JOIN (g ORDER mq_grouped_pk, m INDEX (mq_message_pk)) ORDER BY g.type, g.group_key, g.id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    IF (v_type <> p_type) THEN
                        EXIT;
                    type = v_type;
                    past = 0;
                    ahead = 0;
                    first_at = v_at;
                END
                past = past + 1;
                first_at = MINVALUE(first_at, v_at);
                IF (past > c_most) THEN
                BEGIN
                    v_again = 1;
                    LEAVE;
                END
            END
        ELSE IF (p_table = 'D') THEN
            FOR SELECT type, run_at FROM mq_delayed WHERE type >= :v_from AND type <> :v_after
                PLAN (mq_delayed ORDER mq_delayed_due) ORDER BY type, run_at, id
                INTO v_type, v_at
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    IF (v_type <> p_type) THEN
                        EXIT;
                    type = v_type;
                    past = 0;
                    ahead = 0;
                    first_at = v_at;
                END
                IF (v_at <= p_now) THEN
                    past = past + 1;
                ELSE
                    ahead = ahead + 1;
                IF (past + ahead > 2 * c_most) THEN
                BEGIN
                    v_again = 1;
                    LEAVE;
                END
            END
        ELSE IF (p_table = 'B') THEN
            FOR SELECT b.type, b.lease_until, IIF(b.id IS NULL, (SELECT COUNT(*) FROM mq_claimed AS c WHERE c.batch_key = b.batch_key), 1)
                FROM mq_batch AS b WHERE b.type >= :v_from AND b.type <> :v_after
                PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until
                INTO v_type, v_at, v_n
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    IF (v_type <> p_type) THEN
                        EXIT;
                    type = v_type;
                    past = 0;
                    ahead = 0;
                    first_at = v_at;
                END
                IF (v_at <= p_now) THEN
                    past = past + v_n;
                ELSE
                    ahead = ahead + v_n;
                IF (past + ahead > 2 * c_most) THEN
                BEGIN
                    v_again = 1;
                    LEAVE;
                END
            END
        ELSE IF (p_table = 'E') THEN
            FOR SELECT type FROM mq_dead WHERE type >= :v_from AND type <> :v_after
                PLAN (mq_dead ORDER mq_dead_age) ORDER BY type, died_at, id
                INTO v_type
            DO
            BEGIN
                IF (v_type IS DISTINCT FROM type) THEN
                BEGIN
                    IF (type IS NOT NULL) THEN
                        SUSPEND;
                    IF (v_type <> p_type) THEN
                        EXIT;
                    type = v_type;
                    past = 0;
                    ahead = 0;
                    first_at = NULL;
                END
                past = past + 1;
                IF (past > c_most) THEN
                BEGIN
                    v_again = 1;
                    LEAVE;
                END
            END
        IF (v_again = 1) THEN
        BEGIN
            IF (p_type IS NOT NULL) THEN
                LEAVE;
            v_after = type;
            v_from = IIF(CHAR_LENGTH(type) < 200, RPAD(type, 199) || '!', type);
        END
    END
    IF (type IS NOT NULL) THEN
        SUSPEND;
END^

SET TERM ; ^
