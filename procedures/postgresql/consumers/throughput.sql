-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (a time in the first minute; NULL: an hour ago; reports
--              are kept for 24 hours), p_size (1 to 10,000; NULL: 10,000), p_after_minute and p_after_type (the last row of
--              the page before; NULL: from the first)
-- Returns:     one row per minute and type, by minute and type: type, minute, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers), each at most 9,223,372,036,854,775,807; no row for a minute without figures
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT minute, completed, busy_ms / greatest(completed, 1) FROM mq.throughput('email');

CREATE OR REPLACE FUNCTION mq.throughput(
    p_type text DEFAULT NULL,
    p_since timestamptz DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    p_after_minute timestamptz DEFAULT NULL,
    p_after_type text DEFAULT NULL
) RETURNS TABLE (
    type text,
    minute timestamptz,
    sent bigint,
    completed bigint,
    failed bigint,
    dead bigint,
    waited_ms bigint,
    busy_ms bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashagg = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_most CONSTANT bigint := 9223372036854775807;
    v_since timestamptz := coalesce(p_since, clock_timestamp() - interval '1 hour');
BEGIN
    PERFORM mq.require_name('type', p_type, true);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    PERFORM mq.require_name('after_type', p_after_type, true);
    RETURN QUERY
        SELECT t.type, t.minute, least(sum(t.sent), c_most)::bigint, least(sum(t.completed), c_most)::bigint,
            least(sum(t.failed), c_most)::bigint, least(sum(t.dead), c_most)::bigint, least(sum(t.waited_ms), c_most)::bigint,
            least(sum(t.busy_ms), c_most)::bigint
        FROM mq.report AS t
        -- Includes the minute of v_since.
        WHERE t.minute > v_since - interval '1 minute' AND (p_type IS NULL OR t.type = p_type)
            AND (t.minute, t.type) > (coalesce(p_after_minute, '-infinity'), coalesce(p_after_type, ''))
        GROUP BY t.minute, t.type
        ORDER BY t.minute, t.type
        LIMIT coalesce(p_size, 10000);
END
$$;
