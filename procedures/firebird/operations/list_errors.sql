-- list_errors: count the dead letters of a queue by their error, exactly.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks: each dead letter of the queue
-- Example:     SELECT messages, error FROM mq_list_errors('email');

CREATE OR ALTER PROCEDURE mq_list_errors (
    p_type mq_argument,
    p_size bigint = NULL
)
RETURNS (error mq_name, messages bigint, first_at timestamp, last_at timestamp, last_id bigint)
AS
DECLARE v_hash bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_record_version;
    p_size = COALESCE(p_size, 20);
    FOR
        SELECT g.error, g.messages, g.first_at, g.last_at, g.error_hash
        FROM imq_count_errors(:p_type) AS g
        ORDER BY g.messages DESC, g.error
        ROWS :p_size
        INTO error, messages, first_at, last_at, v_hash
    DO
    BEGIN
        SELECT MAX(d.id) FROM mq_dead AS d
        WHERE d.type = :p_type AND d.error_hash = :v_hash AND d.died_at = :last_at AND d.error_group = :error
        INTO last_id;
        -- Another call may have deleted them in the meantime.
        IF (last_id IS NOT NULL) THEN
            SUSPEND;
    END
END
