-- count_types: how many entries each type has in one of the queue's tables, in the order of the types, without counting on
--              where there are many.
-- Arguments:   p_table (ready, delayed, batch, grouped or dead), p_type (NULL: all), p_cap (what is above it is not counted on),
--              p_now
-- Returns:     type; first_count and second_count: ready, due and delayed, active and expired, or dead messages; oldest: the
--              smallest run_at of what is ready or due
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT type, first_count FROM mq_count_types('ready', NULL, 10000, mq_utc_now());
--
-- The scan begins again past a type of which there are enough: at the least name after it, because the engine would read a bound
-- that two types share to its end. The longest names have no such name. Nothing comes before RPAD('', 200, ASCII_CHAR(0)). A
-- cursor that is closed and opened again ends the server (5.0.4).

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_count_types (
    p_table varchar(7) CHARACTER SET ASCII,
    p_type mq_name,
    p_cap integer,
    p_now timestamp
)
RETURNS (
    type mq_name,
    first_count bigint,
    second_count bigint,
    oldest timestamp
)
AS
DECLARE v_enough integer;
DECLARE v_from mq_name;
DECLARE v_past mq_name;
DECLARE v_again smallint = 1;
DECLARE v_type mq_name;
DECLARE v_messages bigint;
DECLARE v_is_first smallint;
DECLARE v_run_at timestamp;
BEGIN
    v_enough = IIF(p_table IN ('delayed', 'batch'), 2 * p_cap, p_cap);
    v_past = RPAD('', 200, ASCII_CHAR(0));
    v_from = COALESCE(p_type, v_past);
    WHILE (v_again = 1) DO
    BEGIN
        v_again = 0;
        FOR SELECT type, messages, is_first, run_at FROM mq_type_entries(:p_table, :v_from, :v_past, :p_now)
            INTO v_type, v_messages, v_is_first, v_run_at
        DO
        BEGIN
            IF (v_type IS DISTINCT FROM type) THEN
            BEGIN
                IF (type IS NOT NULL) THEN
                    SUSPEND;
                IF (v_type <> p_type) THEN
                    EXIT;
                type = v_type;
                first_count = 0;
                second_count = 0;
                oldest = v_run_at;
            END
            IF (v_is_first = 1) THEN
                first_count = first_count + v_messages;
            ELSE
                second_count = second_count + v_messages;
            IF (v_run_at < oldest) THEN
                oldest = v_run_at;
            IF (first_count + second_count > v_enough) THEN
            BEGIN
                v_again = 1;
                LEAVE;
            END
        END
        IF (v_again = 1) THEN
        BEGIN
            IF (p_type IS NOT NULL) THEN
                LEAVE;
            v_past = type;
            v_from = IIF(CHAR_LENGTH(type) < 200, RPAD(type, 199) || '!', type);
        END
    END
    IF (type IS NOT NULL) THEN
        SUSPEND;
END^

SET TERM ; ^
