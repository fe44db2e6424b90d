-- put_back_rows: update the entries of failed attempts: they wait for the next attempt, or are dead.
-- Arguments: p_name, p_pass (see my_pass); parallel arrays: p_ids (of entries), p_retries and p_errors (see fail_rows);
--     p_dead (the ids that become dead); parallel arrays: p_left and p_told (ids whose status could not be written, and
--     the errors)
CREATE OR REPLACE FUNCTION mq_internal.put_back_rows(
    p_name text, p_pass text, p_ids bigint[], p_retries bigint[], p_errors text[], p_dead bigint[], p_left bigint[],
    p_told text[], OUT failed bigint, OUT dead bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    WITH written AS (
        UPDATE mq.polled_row AS e
        SET state = CASE WHEN e.id = ANY (p_dead) THEN 'E' ELSE 'N' END,
            batch_key = NULL,
            run_at = CASE WHEN e.id = ANY (p_dead) THEN v_now
                -- Jitter: half to all of the delay. Rows that failed together are then not retried together.
                ELSE v_now + make_interval(secs => coalesce(CASE WHEN u.retry >= 0 THEN u.retry WHEN u.retry = -2 THEN 0 END,
                    least(3600, 5 * 2.0 ^ least(e.attempts - 1, 40)) * (0.5 + random() / 2))) END,
            attempts = e.attempts - CASE WHEN u.retry = -2 THEN 1 ELSE 0 END,
            active = e.active AND l.id IS NOT NULL,
            error = left(coalesce(l.error, CASE WHEN u.retry = -2 THEN e.error ELSE u.error END), 4000)
        FROM unnest(p_ids, p_retries, p_errors) AS u (id, retry, error)
        LEFT JOIN unnest(p_left, p_told) AS l (id, error) ON l.id = u.id
        WHERE e.id = u.id AND e.name = p_name
        RETURNING e.state
    )
    SELECT count(*) FILTER (WHERE state = 'N'), count(*) FILTER (WHERE state = 'E') INTO failed, dead FROM written;
END
$$;
