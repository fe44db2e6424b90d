-- match_outcomes: read a list of outcomes and sort the messages of a batch by it.
-- Arguments: p_named (true: what the list does not name is left; false: it is done)
-- Returns: failed, with the arrays of fail_messages; released, with the attempts before the claim; done; left_ids
CREATE OR REPLACE FUNCTION mq_internal.match_outcomes(
    p_batch mq.batch, p_outcomes text, p_named boolean, OUT failed bigint[], OUT failed_attempts smallint[],
    OUT retries integer[], OUT errors text[], OUT released bigint[], OUT released_attempts smallint[], OUT done bigint[],
    OUT done_attempts smallint[], OUT left_ids bigint[], OUT left_attempts smallint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_named bigint[];
BEGIN
    SELECT array_agg(u.id) FILTER (WHERE o.error IS NOT NULL), array_agg(u.attempt) FILTER (WHERE o.error IS NOT NULL),
        array_agg(o.retry) FILTER (WHERE o.error IS NOT NULL), array_agg(o.error) FILTER (WHERE o.error IS NOT NULL),
        array_agg(u.id) FILTER (WHERE o.retry = -2), array_agg((u.attempt - 1)::smallint) FILTER (WHERE o.retry = -2),
        array_agg(u.id) FILTER (WHERE o.error IS NULL AND o.retry IS NULL),
        array_agg(u.attempt) FILTER (WHERE o.error IS NULL AND o.retry IS NULL),
        coalesce(array_agg(u.id) FILTER (WHERE p_named OR o.error IS NOT NULL OR o.retry = -2), '{}')
    INTO failed, failed_attempts, retries, errors, released, released_attempts, done, done_attempts, v_named
    FROM mq_internal.read_outcomes(p_outcomes) AS o
    JOIN unnest(p_batch.ids, p_batch.attempts) AS u (id, attempt) ON u.id = o.id;
    SELECT array_agg(u.id), array_agg(u.attempt) INTO left_ids, left_attempts
    FROM unnest(p_batch.ids, p_batch.attempts) AS u (id, attempt)
    WHERE u.id <> ALL (v_named);
    IF NOT p_named THEN
        SELECT left_ids, left_attempts, NULL, NULL INTO done, done_attempts, left_ids, left_attempts;
    END IF;
END
$$;
