-- add_throughput: add to a consumer's figures of a type and a minute; the first call of a minute deletes old reports.
-- Arguments:   p_type, p_consumer, p_at (a time in that minute), p_sent, p_completed, p_failed, p_dead, p_waited_ms,
--              p_busy_ms
CREATE OR ALTER PROCEDURE imq_add_throughput (
    p_type mq_name, p_consumer mq_name, p_at timestamp, p_sent bigint, p_completed bigint, p_failed bigint, p_dead bigint,
    p_waited_ms bigint, p_busy_ms bigint
)
AS
DECLARE c_base timestamp = TIMESTAMP '2000-01-01 00:00:00';
DECLARE v_minute timestamp;
BEGIN
    v_minute = DATEADD(DATEDIFF(MINUTE FROM c_base TO p_at) MINUTE TO c_base);
    UPDATE mq_report AS t
    SET t.sent = t.sent + :p_sent,
        t.completed = t.completed + :p_completed,
        t.failed = t.failed + :p_failed,
        t.dead = t.dead + :p_dead,
        t.waited_ms = t.waited_ms + :p_waited_ms,
        t.busy_ms = t.busy_ms + :p_busy_ms
    WHERE t."MINUTE" = :v_minute AND t.type = :p_type AND t.consumer = :p_consumer;
    IF (ROW_COUNT = 0) THEN
    BEGIN
        INSERT INTO mq_report ("MINUTE", sent, completed, failed, dead, waited_ms, busy_ms, type, consumer)
        VALUES (:v_minute, :p_sent, :p_completed, :p_failed, :p_dead, :p_waited_ms, :p_busy_ms, :p_type, :p_consumer);
        EXECUTE PROCEDURE imq_forget_reports(mq_utc_now());
    END
END
