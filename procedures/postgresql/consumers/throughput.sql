-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (a time in the first minute; NULL: an hour ago; reports
--              are kept for 24 hours)
-- Returns:     type, minute_at, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers); no row for a minute without figures; a sum ends at 10^18
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT minute_at, completed, busy_ms / greatest(completed, 1) FROM mq.throughput('email');
CREATE OR REPLACE FUNCTION mq.throughput(
    p_type text DEFAULT NULL,
    p_since timestamptz DEFAULT NULL
) RETURNS TABLE (
    type text,
    minute_at timestamptz,
    sent bigint,
    completed bigint,
    failed bigint,
    dead bigint,
    waited_ms bigint,
    busy_ms bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c_most CONSTANT bigint := 1000000000000000000;
    v_since timestamptz := coalesce(p_since, clock_timestamp() - interval '1 hour');
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    RETURN QUERY
        -- The reports of many consumers may add up to more than a bigint.
        SELECT t.type, t.minute, least(sum(t.sent), c_most)::bigint, least(sum(t.completed), c_most)::bigint,
            least(sum(t.failed), c_most)::bigint, least(sum(t.dead), c_most)::bigint, least(sum(t.waited_ms), c_most)::bigint,
            least(sum(t.busy_ms), c_most)::bigint
        FROM mq.report AS t
        -- Includes the minute of v_since.
        WHERE t.minute > v_since - interval '1 minute' AND (p_type IS NULL OR t.type = p_type)
        GROUP BY t.type, t.minute
        ORDER BY t.type, t.minute;
END
$$;
