-- newest_dead: the newest 10,000 dead letters of a type.
-- Arguments:   p_type, p_marked (1: return the error group)
-- Returns:     n (from 1, the newest), id, died_at, marked (error_group of its error, with a character appended because
--              comparisons ignore trailing blanks; NULL when p_marked is 0)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT n, id, marked FROM mq_newest_dead('email', 1);
--
-- Errors are long: sorting rows with their errors takes much longer than reading the errors afterwards.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_newest_dead (
    p_type mq_name,
    p_marked smallint
)
RETURNS (
    n integer,
    id bigint,
    died_at timestamp,
    marked varchar(201) CHARACTER SET UTF8
)
AS
DECLARE c_size integer = 10000;
DECLARE v_from timestamp;
BEGIN
    v_from = mq_newest_from('dead', p_type, c_size);
    n = 0;
    FOR
        SELECT e.id, e.died_at
        FROM mq_dead AS e
        WHERE e.type = :p_type AND e.died_at >= :v_from
        ORDER BY e.died_at DESC, e.id DESC
        ROWS :c_size
        INTO id, died_at
    DO
    BEGIN
        n = n + 1;
        marked = NULL;
        IF (p_marked = 1) THEN
            SELECT mq_error_group(e.error) || ASCII_CHAR(1) FROM mq_dead AS e WHERE e.id = :id INTO marked;
        -- Another call may have deleted it in the meantime.
        IF (p_marked = 0 OR marked IS NOT NULL) THEN
            SUSPEND;
    END
END^

SET TERM ; ^
