-- list_errors: count the newest 10,000 dead letters of a queue by their error.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT "COUNT", error FROM mq_list_errors('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_list_errors (
    p_type mq_argument,
    p_size bigint = NULL
)
RETURNS (
    error mq_name,
    "COUNT" bigint,
    first_at timestamp,
    last_at timestamp,
    last_id bigint
)
AS
DECLARE v_marked varchar(201) CHARACTER SET UTF8;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE mq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE mq_require_record_version;
    p_size = COALESCE(p_size, 20);
    FOR
        SELECT g.marked, COUNT(*), MIN(g.died_at), MAX(g.died_at), CAST(SUBSTRING(MIN(LPAD(g.n, 5) || g.id) FROM 6) AS bigint)
        FROM mq_newest_dead(:p_type, 1) AS g
        GROUP BY g.marked
        ORDER BY 2 DESC, g.marked
        ROWS :p_size
        INTO v_marked, "COUNT", first_at, last_at, last_id
    DO
    BEGIN
        error = LEFT(v_marked, CHAR_LENGTH(v_marked) - 1);
        SUSPEND;
    END
END^

SET TERM ; ^
