-- list_cancelled: which messages of a batch were cancelled; for heartbeats.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     id; no row when none was cancelled, or the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_list_cancelled('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR ALTER PROCEDURE mq_list_cancelled (
    p_batch_key mq_argument
)
RETURNS (id bigint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_record_version;
    FOR SELECT COALESCE(b.id, c.id)
        FROM mq_batch AS b LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
        WHERE b.batch_key = :p_batch_key
            AND EXISTS (SELECT * FROM mq_cancelled AS k WHERE k.id = COALESCE(b.id, c.id))
        ORDER BY 1
        INTO id
    DO
        SUSPEND;
END
