-- count_errors: count the dead letters of a type by their error: reads each of them.
--
-- Sorting or grouping by the text would need its full length for each row.
CREATE OR ALTER PROCEDURE imq_count_errors (p_type mq_name)
RETURNS (error mq_name, messages bigint, first_at timestamp, last_at timestamp, error_hash bigint)
AS
DECLARE v_last mq_name;
BEGIN
    FOR
        SELECT d.error_hash, MIN(d.error_group), MAX(d.error_group), COUNT(*), MIN(d.died_at), MAX(d.died_at)
        FROM mq_dead AS d
        WHERE d.type = :p_type
        GROUP BY d.type, d.error_hash
        PLAN (d ORDER mq_dead_error)
        INTO error_hash, error, v_last, messages, first_at, last_at
    DO
        IF (error = v_last) THEN
            SUSPEND;
        ELSE
            -- Different errors with the same hash.
            FOR
                SELECT d.error_group, COUNT(*), MIN(d.died_at), MAX(d.died_at)
                FROM mq_dead AS d
                WHERE d.type = :p_type AND d.error_hash = :error_hash
                GROUP BY d.error_group
                INTO error, messages, first_at, last_at
            DO
                SUSPEND;
END
