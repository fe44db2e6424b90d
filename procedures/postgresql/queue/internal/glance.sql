-- glance: a quick test of a type, for calls that ask about many types.
-- Returns: busy (false: a claim finds nothing now; true: it may), next_at (when the next delayed message or schedule is due,
--     or the next lease expires; NULL: none)
--
-- A type with a low-water mark of the last second counts as busy: a search without the mark may read many dead rows.
CREATE OR REPLACE FUNCTION mq_internal.glance(p_type text, OUT busy boolean, OUT next_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    SELECT EXISTS (
            SELECT FROM (
                SELECT scanned_at FROM mq.mark WHERE type = p_type ORDER BY type, n DESC, priority, run_at LIMIT 1
            ) AS k
            WHERE v_now BETWEEN k.scanned_at - interval '5 seconds' AND k.scanned_at + interval '1 second'
        ) OR NOT EXISTS (SELECT FROM mq.queue AS q WHERE q.type = p_type AND q.paused)
            AND EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type),
        least(
            (SELECT d.run_at FROM mq.delayed AS d WHERE d.type = p_type ORDER BY d.type, d.run_at LIMIT 1),
            (SELECT b.lease_until FROM mq.batch AS b WHERE b.type = p_type ORDER BY b.type, b.lease_until LIMIT 1),
            mq_internal.next_due(p_type)
        )
    INTO busy, next_at;
    -- A search that takes this long has read dead rows: a claim sets a mark after them.
    busy := busy OR coalesce(next_at <= v_now, false) OR clock_timestamp() > v_now + interval '5 milliseconds';
END
$$;
