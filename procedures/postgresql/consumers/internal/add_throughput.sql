-- add_throughput: add to a consumer's figures of a type and a minute; the first call of a minute deletes old reports.
-- Arguments: p_at (a time in that minute)
CREATE OR REPLACE FUNCTION mq_internal.add_throughput(
    p_type text, p_consumer text, p_at timestamptz, p_sent bigint, p_completed bigint, p_failed bigint, p_dead bigint,
    p_waited_ms bigint, p_busy_ms bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_minute timestamptz := date_bin('1 minute', p_at, '2000-01-01 00:00:00+00');
BEGIN
    UPDATE mq.report AS t
    SET sent = t.sent + p_sent, completed = t.completed + p_completed, failed = t.failed + p_failed, dead = t.dead + p_dead,
        waited_ms = t.waited_ms + p_waited_ms, busy_ms = t.busy_ms + p_busy_ms
    WHERE t.minute = v_minute AND t.type = p_type AND t.consumer = p_consumer;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO mq.report AS t (minute, sent, completed, failed, dead, waited_ms, busy_ms, type, consumer)
    VALUES (v_minute, p_sent, p_completed, p_failed, p_dead, p_waited_ms, p_busy_ms, p_type, p_consumer)
    -- Another process reports with the same name.
    ON CONFLICT (minute, type, consumer) DO UPDATE
    SET sent = t.sent + p_sent, completed = t.completed + p_completed, failed = t.failed + p_failed, dead = t.dead + p_dead,
        waited_ms = t.waited_ms + p_waited_ms, busy_ms = t.busy_ms + p_busy_ms;
    -- At most 1,000 rows of each, and none that others have locked.
    DELETE FROM mq.report
    WHERE ctid = ANY (ARRAY(
        SELECT t.ctid FROM mq.report AS t WHERE t.minute < v_now - interval '24 hours'
        ORDER BY t.minute, t.type, t.consumer
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ));
    -- Consumers that stopped an hour ago or are silent for a day. The table has about as many rows as there were
    -- consumers within a day.
    DELETE FROM mq.consumer
    WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM mq.consumer AS c
        WHERE c.reported_at < v_now - CASE WHEN c.due_at IS NULL THEN interval '1 hour' ELSE interval '24 hours' END
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ));
END
$$;
