-- set_group: give one group of a queue its own share or its own limits.
-- Arguments:   p_type, p_group_key (1 to 200 characters); NULL: as the queue: p_weight (1 to 1,000: messages per turn of a
--              fair queue; NULL: 1), p_max_active and p_rate (0 to 1,000,000; 0: no limit), p_rate_seconds (1 to 86,400);
--              all NULL: the group has nothing of its own
-- Returns:     known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with a limit), 50002 invalid_argument, 50004 queue_not_empty (the first limit of a
--              queue without limits per group needs it to have no new and no active message)
-- Transaction: joins the caller's; see set_queue
-- Example:     EXECUTE PROCEDURE mq_set_group('invoice', 'customer-7', 5);

CREATE OR ALTER PROCEDURE mq_set_group (
    p_type mq_argument,
    p_group_key mq_argument,
    p_weight bigint = NULL,
    p_max_active bigint = NULL,
    p_rate bigint = NULL,
    p_rate_seconds bigint = NULL
)
RETURNS (known smallint)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_name('group_key', p_group_key, 0);
    EXECUTE PROCEDURE imq_require_range('weight', p_weight, 1, 1000);
    EXECUTE PROCEDURE imq_require_range('max_active', p_max_active, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('rate', p_rate, 0, 1000000);
    EXECUTE PROCEDURE imq_require_range('rate_seconds', p_rate_seconds, 1, 86400);
    IF (COALESCE(p_max_active, p_rate, p_rate_seconds) IS NOT NULL
        AND RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') <> 'READ COMMITTED') THEN
        EXECUTE PROCEDURE imq_require_read_committed;
    IF (COALESCE(p_weight, p_max_active, p_rate, p_rate_seconds) IS NULL) THEN
        DELETE FROM mq_queue_group WHERE type = :p_type AND group_key = :p_group_key;
    ELSE
        UPDATE OR INSERT INTO mq_queue_group (type, group_key, weight, max_active, rate, rate_seconds)
        VALUES (:p_type, :p_group_key, :p_weight, :p_max_active, :p_rate, :p_rate_seconds);
    -- It checks the limits of all groups, and makes the queue grouped.
    SELECT s.type, s.known FROM mq_set_queue(:p_type) AS s INTO p_type, known;
    IF (EXISTS (SELECT * FROM mq_queue WHERE type = :p_type AND grouped = 1)) THEN
        EXECUTE PROCEDURE imq_rebuild_groups(p_type);
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
