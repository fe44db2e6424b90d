-- extend_rows: extend the lease of claimed rows: it ends p_seconds from now.
-- Arguments:   p_batch_key, p_seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: rows still held; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for a call that is finishing the batch
-- Example:     EXECUTE PROCEDURE mq_extend_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60);

CREATE OR ALTER PROCEDURE mq_extend_rows (
    p_batch_key mq_argument,
    p_seconds bigint = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_range('seconds', p_seconds, 1, 86400);
    EXECUTE PROCEDURE imq_lock_row('polled_batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    affected = 0;
    IF (v_found = 1) THEN
    BEGIN
        UPDATE mq_polled_batch SET lease_until = DATEADD(COALESCE(:p_seconds, lease_seconds) SECOND TO mq_utc_now())
        WHERE batch_key = :p_batch_key;
        SELECT COUNT(*) FROM mq_polled_row WHERE batch_key = :p_batch_key INTO affected;
    END
    SUSPEND;
END
