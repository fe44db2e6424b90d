-- claim_rows: claim up to p_size rows of a polling table under one new batch key.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1), p_consumer (1 to 200 characters; NULL: the
--              application name), p_lease_seconds (1 to 86,400; NULL: 60)
-- Returns:     id, row_key, row_data (JSON objects), attempt, batch_key, lease_until: rows to retry first, then new rows in their
--              order; no rows when none is ready, or when another claim of the table stays open for 200 milliseconds
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; claims of one table wait for each other until it
--              ends; skips rows that others have locked
-- Example:     SELECT * FROM mq_claim_rows('orders', 10, 'worker-1', 60);
--
-- An entry is a row of mq_polled_row. It records one claimed, waiting or dead row of the table.

CREATE OR ALTER PROCEDURE mq_claim_rows (
    p_name mq_argument,
    p_size bigint = NULL,
    p_consumer mq_argument = NULL,
    p_lease_seconds bigint = NULL
)
RETURNS (id bigint, row_key mq_text, row_data mq_text, attempt integer, batch_key mq_key, lease_until timestamp)
AS
-- How long to wait for another claim, in milliseconds.
DECLARE c_patience integer = 200;
DECLARE v_consumer mq_name;
DECLARE v_seconds integer;
DECLARE v_key mq_key;
DECLARE v_n bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 1);
    EXECUTE PROCEDURE imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_require_read_committed;
    v_consumer = imq_consumer_name(p_consumer);
    v_seconds = COALESCE(p_lease_seconds, 60);
    EXECUTE PROCEDURE imq_lock_polled(p_name, v_consumer, c_patience) RETURNING_VALUES v_n;
    IF (v_n = 0) THEN
        EXIT;
    EXECUTE PROCEDURE imq_rescue_rows(p_name);
    DELETE FROM mq_polled_write;
    v_key = LOWER(UUID_TO_CHAR(GEN_UUID()));
    EXECUTE PROCEDURE imq_pick_rows(p_name, COALESCE(p_size, 1), v_key);
    -- Rows that the table refused, or that had no attempts left.
    IF (EXISTS (SELECT * FROM mq_polled_write)) THEN
        EXECUTE PROCEDURE imq_settle_rows(p_name) RETURNING_VALUES v_n, v_n, v_n, v_n, v_n;
    IF (EXISTS (SELECT * FROM mq_polled_row WHERE batch_key = :v_key)) THEN
    BEGIN
        batch_key = v_key;
        lease_until = DATEADD(v_seconds SECOND TO mq_utc_now());
        INSERT INTO mq_polled_batch (batch_key, lease_until, lease_seconds, name, consumer)
        VALUES (:v_key, :lease_until, :v_seconds, :p_name, :v_consumer);
        FOR SELECT p.id, p.key_json, t.content, p.attempts
            FROM (SELECT id, key_json, attempts FROM mq_polled_row WHERE batch_key = :v_key ORDER BY id) AS p
            LEFT JOIN mq_polled_taken AS t ON t.id = p.id
            INTO id, row_key, row_data, attempt
        DO
            SUSPEND;
    END
END
