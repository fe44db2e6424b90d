-- purge_archive: delete archived messages that were completed before a time.
-- Arguments:   p_before (UTC; messages completed earlier are deleted), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT
-- Example:     SELECT * FROM mq_purge_archive(DATEADD(-90 DAY TO mq_utc_now()), 10000);

CREATE OR ALTER PROCEDURE mq_purge_archive (
    p_before timestamp,
    p_size bigint = NULL
)
RETURNS ("COUNT" bigint)
AS
BEGIN
    IF (p_before IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'before: must not be NULL');
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_erase_archived(NULL, p_before, COALESCE(p_size, 1000)) RETURNING_VALUES "COUNT";
    SUSPEND;
END
