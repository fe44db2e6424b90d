-- peek_rows: list the rows of a polling table that are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters), p_state (A claimed, N waiting, E dead; NULL: all three), p_size (1 to 10,000;
--              NULL: 20)
-- Returns:     id, row_key (a JSON object), state, attempts, consumer, run_at (A: end of the lease; N: next attempt; E: time of
--              death), error; by state, run_at and id
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks
-- Example:     SELECT id, attempts, error FROM mq_peek_rows('orders', 'E', 20);

CREATE OR ALTER PROCEDURE mq_peek_rows (
    p_name mq_argument,
    p_state mq_text = NULL,
    p_size bigint = NULL
)
RETURNS (
    id bigint, row_key mq_text, state varchar(1) CHARACTER SET UTF8, attempts integer, consumer mq_name, run_at timestamp,
    error mq_error
)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    -- LIKE: for = 'N ' would equal 'N'.
    IF (p_state NOT LIKE 'A' AND p_state NOT LIKE 'N' AND p_state NOT LIKE 'E') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'state: must be A, N or E');
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    IF (NOT EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'name: no table is adopted as ' || p_name);
    -- Keys and errors are data of the table: only those who may read the table see them.
    EXECUTE PROCEDURE imq_require_polled(p_name);
    p_size = COALESCE(p_size, 20);
    FOR SELECT p.id, p.key_json, p.state, p.attempts, p.consumer, COALESCE(b.lease_until, p.run_at), p.error
        FROM mq_polled_row AS p
        LEFT JOIN mq_polled_batch AS b ON b.batch_key = p.batch_key
        WHERE p.name = :p_name
        PLAN JOIN (p ORDER mq_polled_row_due, b INDEX (mq_polled_batch_pk))
        ORDER BY p.name, p.state, p.run_at, p.id
        INTO id, row_key, state, attempts, consumer, run_at, error
    DO
        IF (p_size > 0 AND (p_state IS NULL OR state = CAST(p_state AS varchar(1)))) THEN
        BEGIN
            p_size = p_size - 1;
            SUSPEND;
        END
        ELSE IF (p_size <= 0) THEN
            LEAVE;
END
