-- clean_buckets: clean up the token buckets of groups, and after a change of limits unblock stuck groups.
-- Transaction: skips rows that others have locked
--
-- The first claim of each second calls this. A full bucket is the same as no bucket, so it is deleted. A bucket whose
-- full_at is more than one period ahead was written before the clock was set back: it starts to fill now. The message that
-- waits for its token becomes due, so a claim computes the new time of the token.
CREATE OR REPLACE FUNCTION mq_internal.clean_buckets(p_queue mq.queue) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c_buckets CONSTANT integer := 100;
    -- Claims that began with the old limits have committed by then.
    c_mend CONSTANT interval := '10 seconds';
    v_now timestamptz := clock_timestamp();
    v_latest timestamptz := v_now + make_interval(secs => greatest(p_queue.group_rate_seconds,
        (SELECT max(g.rate_seconds) FROM mq.queue_group AS g WHERE g.type = p_queue.type)));
BEGIN
    IF v_now BETWEEN p_queue.changed_at AND p_queue.changed_at + c_mend THEN
        PERFORM mq_internal.unblock_groups(p_queue.type);
    END IF;
    DELETE FROM mq.bucket
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.bucket WHERE type = p_queue.type AND full_at <= v_now
        ORDER BY type, full_at
        LIMIT c_buckets
        FOR UPDATE SKIP LOCKED
    ));
    IF EXISTS (SELECT FROM mq.bucket WHERE type = p_queue.type AND full_at > v_latest) THEN
        WITH ahead AS (
            UPDATE mq.bucket
            SET full_at = v_latest
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.bucket WHERE type = p_queue.type AND full_at > v_latest
                ORDER BY type, full_at
                LIMIT c_buckets
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING group_key
        )
        UPDATE mq.delayed
        SET run_at = v_now
        WHERE ctid = ANY (ARRAY(
            SELECT d.ctid FROM ahead AS a
            JOIN mq.group_lock AS l ON l.type = p_queue.type AND l.group_key = a.group_key
            JOIN mq.delayed AS d ON d.id = l.id
            WHERE d.run_at > v_now AND d.error IS NULL
            FOR UPDATE OF d SKIP LOCKED
        ));
    END IF;
END
$$;
