-- release_rows: give claimed rows back without counting an attempt.
-- Arguments:   p_batch_key
-- Returns:     affected: rows given back; 0 when the lease was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; waits up to two seconds for each locked row, then
--              fails with a lock conflict
-- Example:     EXECUTE PROCEDURE mq_release_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR ALTER PROCEDURE mq_release_rows (
    p_batch_key mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_name mq_name;
DECLARE v_n bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_drop_polled_batch(p_batch_key) RETURNING_VALUES v_name;
    affected = 0;
    IF (v_name IS NOT NULL) THEN
    BEGIN
        DELETE FROM mq_polled_write;
        INSERT INTO mq_polled_write (id, kind) SELECT id, 'R' FROM mq_polled_row WHERE batch_key = :p_batch_key;
        EXECUTE PROCEDURE imq_settle_rows(v_name) RETURNING_VALUES v_n, v_n, v_n, v_n, affected;
    END
    SUSPEND;
END
