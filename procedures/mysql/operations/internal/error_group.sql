-- error_group: the common text of errors that differ only in numbers: the first line, with # for each run of digits.
-- Arguments:   none; it is a view, because some servers refuse stored functions
-- Returns:     id, type, died_at, error (up to 200 characters, from the first 500 of the error; '': no error) of each
--              dead letter
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT error FROM mq_error_group WHERE id = 17;  -- order #: timeout after # s

CREATE OR REPLACE DEFINER = 'mq_owner'@'localhost' SQL SECURITY INVOKER VIEW mq_error_group AS
SELECT
    e.id,
    e.type,
    e.died_at,
    LEFT(REGEXP_REPLACE(
        SUBSTRING_INDEX(SUBSTRING_INDEX(LEFT(COALESCE(e.error, ''), 500), CHAR(10 USING utf8mb4), 1), CHAR(13 USING utf8mb4), 1),
        '[0-9#]+', '#'
    ), 200) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ AS error
FROM mq_dead AS e FORCE INDEX (dead_age);
