-- newest_dead: the newest 10,000 dead letters of a type.
-- Arguments:   p_type
-- Returns:     n (from 1, the newest), id, died_at
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT d.id, d.error FROM mq_newest_dead('email') AS n LEFT JOIN mq_dead AS d ON d.id = n.id;
--
-- Errors are long: to sort rows that have them takes much longer than to read them afterwards.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_newest_dead (
    p_type mq_name
)
RETURNS (
    n integer,
    id bigint,
    died_at timestamp
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
        SUSPEND;
    END
END^

SET TERM ; ^
