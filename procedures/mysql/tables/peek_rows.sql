-- peek_rows: list the rows of a polling table that are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters), p_state (A claimed, N waiting, E dead; NULL: all three), p_size (1 to 10,000;
--              NULL: 20)
-- Returns:     id, row_key (a JSON object), state, attempts, consumer, run_at (A: end of the lease; N: next attempt; E: time of
--              death), error; by state, run_at and id
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks
-- Example:     CALL mq_peek_rows('orders', 'E', 100);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_peek_rows(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_state longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    CALL imq_require_name('name', p_name, 0);
    IF BINARY p_state NOT IN ('A', 'N', 'E') THEN
        CALL imq_raise_error('invalid_argument', 'state: must be A, N or E');
    END IF;
    CALL imq_require_range('size', p_size, 1, 10000);
    -- Keys and errors are data of the table: only those who may read the table see them.
    CALL imq_use_polled(p_name, 'read');
    SET v_count = COALESCE(p_size, 20);
    SELECT e.id, e.key_json AS row_key, CONVERT(e.state USING utf8mb4) AS state, e.attempts, e.consumer,
        COALESCE(b.lease_until, e.run_at) AS run_at, e.error
    FROM mq_polled_row AS e
    LEFT JOIN mq_polled_batch AS b ON b.batch_key = e.batch_key
    WHERE e.name = p_name AND (p_state IS NULL OR e.state = p_state)
    ORDER BY e.state, e.run_at, e.id LIMIT v_count;
END
