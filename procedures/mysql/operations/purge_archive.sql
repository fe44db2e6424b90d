-- purge_archive: delete archived messages that were completed before a time.
-- Arguments:   p_before (messages completed earlier are deleted), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     CALL mq_purge_archive(UTC_TIMESTAMP() - INTERVAL 90 DAY, 10000);
--
-- A monthly partition with only older messages can be emptied at once with ALTER TABLE mq_archive TRUNCATE PARTITION
-- archive_01. This call does not do it, because it would commit the caller's transaction.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_purge_archive(
    IN p_before datetime(6),
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own tinyint;
    DECLARE v_count bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_before IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'before: must not be NULL');
    END IF;
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_begin_call(1, v_own);
    CALL imq_erase_archived(NULL, p_before, COALESCE(p_size, 1000), v_count);
    CALL imq_end_call(v_own);
    SELECT v_count AS count;
END
