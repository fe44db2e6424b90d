-- fail_messages: record failed attempts: retry each message after a delay, or dead-letter it after its last attempt. One that
--     was cancelled is deleted.
-- Arguments: p_retries (seconds; NULL: the policy's backoff; -1: dead-letter it now), p_errors (cut to 4,000 characters)
-- Returns: the dead letters
CREATE OR REPLACE FUNCTION mq_internal.fail_messages(
    p_queue mq.queue, p_consumer text, p_ids bigint[], p_attempts smallint[], p_retries bigint[], p_errors text[]
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_dead bigint[];
    v_freed bigint[];
BEGIN
    PERFORM mq_internal.drop_cancelled(p_queue, p_ids);
    WITH failed AS (
        SELECT m.id, m.type, m.priority, u.attempt, left(u.error, 4000) AS error,
            u.retry IS NOT DISTINCT FROM -1 OR u.attempt >= coalesce(m.max_attempts, p_queue.max_attempts) AS dies,
            -- Random jitter, half to all of the backoff: messages that failed together are retried at different times.
            coalesce(u.retry, least(p_queue.backoff_max_seconds, p_queue.backoff_seconds * 2.0 ^ least(u.attempt - 1, 40))
                * (0.5 + random() / 2)) AS delay
        FROM unnest(p_ids, p_attempts, p_retries, p_errors) AS u (id, attempt, retry, error)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
    ), retried AS (
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type, error)
        SELECT id, v_now + make_interval(secs => delay), priority, attempt, type, error FROM failed WHERE NOT dies
    ), died AS (
        -- The error's group: its first line, with # for each run of digits.
        INSERT INTO mq.dead (id, died_at, attempts, type, consumer, error, error_group)
        SELECT id, v_now, attempt, type, p_consumer, error, rtrim(left(regexp_replace(split_part(split_part(
            left(coalesce(error, ''), 500), chr(10), 1), chr(13), 1), '[0-9#]+', '#', 'g'), 200), ' ')
        FROM failed WHERE dies
        RETURNING id
    )
    SELECT array_agg(id) INTO v_dead FROM died;
    IF p_queue.grouped AND NOT p_queue.ordered THEN
        PERFORM mq_internal.free_groups(p_queue, p_ids);
    ELSIF p_queue.ordered AND v_dead IS NOT NULL THEN
        -- The messages that will be retried block their groups, and so do dead letters that stop theirs. The lock keeps
        -- set_queue waiting: it sees this dead letter, or this call sees its change.
        SELECT CASE WHEN dead_stops_group THEN ARRAY(SELECT id FROM mq.message WHERE id = ANY (v_dead) AND group_key IS NULL) ELSE v_dead END
        INTO v_freed FROM mq.queue WHERE type = p_queue.type FOR KEY SHARE;
        PERFORM mq_internal.free_groups(p_queue, v_freed);
    END IF;
    PERFORM mq_internal.wake(p_queue.type);
    RETURN v_dead;
END
$$;
